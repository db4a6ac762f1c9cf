// Answers on the page. Everything is set as text.

import { curve } from "./draw.js";

export const byId = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const TEXTS = ["epsilon", "at", "error", "error-help", "refusal", "meaning", "without", "gauge", "made", "assumption", "mini", "mini-error", "link", "curve-text", "compare-text", "said"];

// Nothing of an earlier answer stays beside knobs that have moved.
export function clear() {
  for (const id of TEXTS) byId(id).textContent = "";
  for (const id of ["warnings", "curve", "compare", "honest"]) byId(id).replaceChildren();
  for (const tabs of [statements, codes]) tabs.set([]);
  byId("epsilon").textContent = byId("mini").textContent = "…";
  for (const id of ["answer", "curve", "compare", "honest"]) busy(id, true);
}

function busy(id, on) {
  byId(id).classList.toggle("busy", on);
  byId(id).setAttribute("aria-busy", String(on));
}

function refuse(found) {
  for (const id of ["answer", "curve", "compare", "honest"]) busy(id, false);
  byId("epsilon").textContent = byId("mini").textContent = "–";
  byId("refusal").textContent = found.refusal;
}

const parts = {
  epsilon(found) {
    busy("answer", false);
    const { shown, shown_lower: low } = found.epsilon;
    const [rounds, n] = [Number(found.link.rounds), Number(found.honest).toLocaleString("en-US")];
    byId("epsilon").textContent = byId("mini").textContent = shown;
    byId("at").textContent = `at delta = ${found.delta}, ${rounds === 1 ? "one round" : `all ${rounds.toLocaleString("en-US")} rounds together`}`;
    byId("error").textContent = byId("mini-error").textContent = found.error.shown;
    byId("error-help").textContent = found.error.sentence;
    byId("meaning").textContent = found.meaning;
    byId("without").textContent = found.without;
    const silent = /exact|crowd/.test(found.analysis) ? ", if no device's coin flips leak" : "";
    byId("gauge").replaceChildren(
      make("span", {}, "Certified: between ", make("b", {}, low), " and ", make("b", {}, shown)),
      make("span", {}, "Analysis: ", make("b", {}, found.analysis), silent),
      make("span", {}, "Honest reports in a round: ", make("b", {}, n)),
      make("span", {}, `Limit of many people: ${found.limit}`),
    );
    byId("assumption").textContent = found.assumption;
    byId("warnings").replaceChildren(...found.warnings.map((text) => make("li", {}, text)));
    statements.set([["Plain words", found.statement.plain, "p"], ["Formal words", found.statement.formal, "p"], ["Registry record", found.registry, "pre"]]);
    codes.set([["Python", found.python, "pre"], ["Shell", found.shell, "pre"]]);
    byId("said").textContent = `epsilon is at most ${shown}`;
  },
  curve(found) {
    busy("curve", false);
    if (found.refusal || found.points.length === 0) {
      byId("curve-text").textContent = found.refusal ?? "delta does not depend on epsilon here: there is no curve to draw.";
      return;
    }
    const wide = found.points.some(([, low, high]) => high > 1.3 * low && high > 1e-14);
    byId("curve-text").textContent = `Every pair of epsilon and delta above the line holds. The true curve lies in the band${wide ? "." : ", which is hardly thicker than the line."}`;
    byId("curve").replaceChildren(curve(found, Math.max(300, byId("curve").clientWidth)));
  },
  compare(found) {
    busy("compare", false);
    if (found.refusal) {
      byId("compare-text").textContent = found.refusal;
      return;
    }
    byId("compare-text").textContent = `Smaller is a better proof (strong: of more, your own coin is known); logarithmic scale. No proof can give less than ${found.shown_lower}. ${found.left_out}`;
    const values = found.rows.filter((row) => !row.unsound).map((row) => Number(row.value)).filter((value) => value > 0 && Number.isFinite(value));
    const [low, high] = [Math.min(...values) / 2, Math.max(...values)]; // what is no bound may be absurdly small
    const ours = found.rows.find((row) => row.certified);
    const head = make("thead", {}, make("tr", {}, ...["bound", "", "epsilon"].map((name) => make("th", { scope: "col" }, name || make("span", { class: "unseen" }, "bar")))));
    byId("compare").replaceChildren(head, make("tbody", {}, ...found.rows.map((row) => {
      const bar = make("div");
      const share = Math.log(Number(row.value) / low) / Math.log(high / low);
      bar.style.width = `${100 * (Number.isFinite(share) ? Math.min(1, Math.max(0, share)) : 1)}%`;
      const struck = (text) => (row.unsound ? make("s", {}, text) : text);
      const name = make("th", { scope: "row" }, struck(row.bound), make("span", { class: "cite" }, row.theorem));
      if (row.unsound) name.append(make("span", { class: "why" }, `unsound, not a bound: ${row.note}`));
      else if (row.soundness !== "sound") name.append(make("span", { class: "cite" }, row.note));
      const kind = row.unsound ? "unsound" : row === ours ? "ours" : "";
      return make("tr", { class: kind }, name, make("td", { class: "gaugebar" }, bar), make("td", {}, struck(row.shown === "inf" ? "none" : row.shown)));
    })));
  },
  honest(found) {
    busy("honest", false);
    if (found.refusal) {
      byId("honest").replaceChildren(make("caption", {}, found.refusal));
      return;
    }
    const head = make("thead", {}, make("tr", {}, ...["honest reports", "people", "epsilon at most"].map((name) => make("th", { scope: "col" }, name))));
    byId("honest").replaceChildren(head, make("tbody", {}, ...found.rows.map((row) => make("tr", {},
      make("th", { scope: "row" }, row.share === "1" ? "all" : `${Math.round(100 * Number(row.share))} %`),
      make("td", {}, row.honest.toLocaleString("en-US")), make("td", {}, row.shown)))));
  },
};

export function show(part, found) {
  if (part === "epsilon" && found.refusal) refuse(found);
  else parts[part](found);
}

// Texts to copy, one tab each.
function tabs(id) {
  const list = make("div", { role: "tablist" });
  const panels = make("div");
  const button = make("button", { type: "button" }, "Copy");
  byId(id).append(list, panels, button);
  let chosen = 0;
  let texts = [];
  const pick = (index, focus) => {
    chosen = index;
    [...list.children].forEach((tab, i) => {
      tab.setAttribute("aria-selected", String(i === index));
      tab.tabIndex = i === index ? 0 : -1;
      if (i === index && focus) tab.focus();
    });
    [...panels.children].forEach((panel, i) => (panel.hidden = i !== index));
  };
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) pick((chosen + step + texts.length) % texts.length, true);
  });
  button.addEventListener("click", () => document.dispatchEvent(new CustomEvent("copy-text", { detail: { text: texts[chosen][1], button } })));
  return {
    set(found) {
      texts = found;
      button.hidden = found.length === 0;
      list.replaceChildren(...found.map(([name], i) => {
        const tab = make("button", { type: "button", role: "tab", id: `${id}-tab-${i}`, "aria-controls": `${id}-panel-${i}` }, name);
        tab.addEventListener("click", () => pick(i, false));
        return tab;
      }));
      panels.replaceChildren(...found.map(([, text, tag], i) => make(tag, { class: "out", role: "tabpanel", id: `${id}-panel-${i}`, "aria-labelledby": `${id}-tab-${i}`, tabindex: "0" }, text)));
      if (found.length) pick(Math.min(chosen, found.length - 1), false);
    },
  };
}
const statements = tabs("statements");
const codes = tabs("codes");
