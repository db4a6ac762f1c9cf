// The knobs: a number field each, most with a slider beside it. Values are texts, as they are typed and linked.

import { byId, make } from "./show.js";

const log = (low, high) => ({ low, high, to: (x) => low * (high / low) ** x, from: (v) => Math.log(v / low) / Math.log(high / low) });
const linear = (low, high) => ({ low, high, to: (x) => low + (high - low) * x, from: (v) => (v - low) / (high - low) });
const rounded = (value, digits = 2) => String(Number(value.toPrecision(digits)));
const counted = (value) => Math.round(Number(value.toPrecision(2))).toLocaleString("en-US");
const percent = (value) => `${Math.round(value)} %`;
const power = (value) => `1e${Math.round(Math.log10(value))}`;

// label, scale of the slider, text of a value, which end is more private, hint
const LOOK = {
  epsilon0: ["Local epsilon of one report", linear(0.1, 10), (v) => rounded(Math.round(10 * v) / 10, 3), "left", "Smaller: more random reports."],
  k: ["Possible answers", log(2, 1000), counted, "", ""],
  dimension: ["Dimension of the vectors", log(1, 100000), counted, "", ""],
  sigma: ["Sigma, in lengths of the interval", log(0.2, 5), rounded, "right", ""],
  n: ["People in one round", log(100, 1e9), counted, "right", ""],
  rounds: ["Rounds", log(1, 1000), counted, "left", "The same people are asked so many times."],
  population: ["Drawn from a population of", log(100, 1e10), (v) => (v < 120 ? "" : counted(v)), "right", "Empty: the same people answer in every round."],
  delta: ["delta", log(1e-15, 1e-3), power, "left", "Far below one over the number of people."],
  honest_fraction: ["Honest people", linear(50, 100), percent, "right", "Others do not randomize, or tell."],
  dropout: ["Drop out", linear(0, 50), percent, "left", "People whose report never comes."],
};
const CROWD = ["n", "rounds", "population", "poisson", "delta"];
const WHATIF = ["honest_fraction", "dropout"];
const START = { population: "", poisson: "", honest_fraction: "100 %", dropout: "0 %" };
const CHECKS = { poisson: ["Each flips a coin of their own", "People in one round are then an average."] };
const OWN = { k: "5", epsilon0: "3", dimension: "100", sigma: "1" };
const numberOf = (text) => {
  const found = /^\s*([\d.,_]+(?:e[+-]?\d+)?)\s*([kmg%]?)\s*$/i.exec(text);
  return found ? Number(found[1].replaceAll(/[,_]/g, "")) * ({ k: 1e3, m: 1e6, g: 1e9 }[found[2].toLowerCase()] ?? 1) : NaN;
};

function knob(name, help, changed) {
  const [label, scale, text, side, hint] = LOOK[name] ?? [name.replaceAll("_", " "), null, String, "", help.replace(/,? with --.*/, "")];
  const field = make("input", { type: "text", id: name, inputmode: "decimal", "aria-describedby": `${name}-hint ${name}-wrong`, spellcheck: "false" });
  const top = make("div", { class: "top" }, make("label", { for: name }, label), field);
  const box = make("div", { class: "knob" }, top);
  let slider = null;
  if (scale) {
    slider = make("input", { type: "range", min: "0", max: "1000", step: "1", "aria-label": `${label}, slider` });
    const ends = [text(scale.low) || "everyone", text(scale.high)];
    if (side) ends[side === "left" ? 0 : 1] += " · more private";
    slider.addEventListener("input", () => {
      field.value = text(scale.to(slider.value / 1000));
      slider.setAttribute("aria-valuetext", field.value);
      changed();
    });
    box.append(slider, make("div", { class: "ends", "aria-hidden": "true" }, make("span", {}, ends[0]), make("span", {}, ends[1])));
  }
  const place = () => {
    const at = slider ? scale.from(numberOf(field.value)) : NaN;
    if (slider && !field.value) slider.value = "0";
    else if (slider && !Number.isNaN(at)) slider.value = String(Math.round(1000 * Math.min(1, Math.max(0, at))));
    if (slider) slider.setAttribute("aria-valuetext", field.value);
  };
  field.addEventListener("input", () => (place(), changed()));
  const wrong = make("p", { class: "wrong", id: `${name}-wrong` });
  box.append(make("p", { class: "hint", id: `${name}-hint` }, hint), wrong);
  return {
    box,
    get value() { return field.value.trim(); },
    set value(value) { field.value = text === counted && /^\d{4,16}$/.test(value) ? Number(value).toLocaleString("en-US") : value; place(); },
    blame(sentence) { field.setAttribute("aria-invalid", String(Boolean(sentence))); wrong.textContent = sentence; },
  };
}

// Yes or no: "1" or nothing.
function check(name, label, hint, changed) {
  const field = make("input", { type: "checkbox", id: name, "aria-describedby": `${name}-hint ${name}-wrong` });
  const wrong = make("p", { class: "wrong", id: `${name}-wrong` });
  field.addEventListener("change", changed);
  return {
    box: make("div", { class: "knob check" }, make("label", { for: name }, field, ` ${label}`), make("p", { class: "hint", id: `${name}-hint` }, hint), wrong),
    get value() { return field.checked ? "1" : ""; },
    set value(value) { field.checked = /^(1|true)$/i.test(value); },
    blame(sentence) { field.setAttribute("aria-invalid", String(Boolean(sentence))); wrong.textContent = sentence; },
  };
}

export function knobs(catalogue, changed) {
  const options = Object.fromEntries(catalogue.map((entry) => [entry.option, entry]));
  const select = byId("randomizer");
  for (const entry of catalogue) select.append(make("option", { value: entry.option }, entry.summary.replace(/\.$/, "")));
  const fixed = {};
  const shared = (names, place) => names.forEach((name) => { fixed[name] = name in CHECKS ? check(name, ...CHECKS[name], changed) : knob(name, "", changed); byId(place).append(fixed[name].box); });
  shared(CROWD, "crowd");
  shared(WHATIF, "whatif");
  let own = {};

  function choose(option, values = {}) {
    const before = Object.fromEntries(Object.entries(own).map(([name, one]) => [name, one.value]));
    select.value = option;
    own = {};
    byId("own").replaceChildren();
    byId("details").replaceChildren();
    for (const parameter of options[option].parameters) {
      const one = knob(parameter.name, parameter.help, changed);
      own[parameter.name] = one;
      byId(parameter.optional ? "details" : "own").append(one.box);
      one.value = values[parameter.name] ?? before[parameter.name] ?? (parameter.optional ? "" : OWN[parameter.name] ?? "1");
    }
    byId("more").hidden = !byId("details").childElementCount;
    byId("randomizer-help").textContent = `On the command line: --${option}.`;
  }
  select.addEventListener("change", () => (choose(select.value), changed()));

  let stray = {};
  return {
    question() {
      const entry = options[select.value];
      const found = { ...stray, [entry.option]: entry.takes ? own[entry.takes].value : "1" };
      for (const [name, one] of Object.entries({ ...own, ...fixed })) if (name !== entry.takes && one.value) found[name] = one.value;
      return found;
    },
    set(values, keep = false) {
      const given = Object.fromEntries(Object.entries(values).map(([name, value]) => [name.replaceAll("-", "_"), value]));
      const chosen = catalogue.find((entry) => entry.option.replaceAll("-", "_") in given);
      if (chosen) choose(chosen.option, { ...given, ...(chosen.takes ? { [chosen.takes]: given[chosen.option] } : {}) });
      else if (!keep) choose(catalogue[0].option);
      stray = {}; // what no knob shows is asked all the same: the answer says what is wrong with it
      for (const [name, value] of Object.entries(given)) {
        if (name in fixed) fixed[name].value = /fraction|dropout/.test(name) && /^[\d.]+$/.test(value) ? `${rounded(100 * Number(value), 12)} %` : value;
        else if (name in own) own[name].value = value;
        else if (name !== chosen?.option.replaceAll("-", "_")) stray[name] = value;
      }
      if (!keep) for (const [name, value] of Object.entries(START)) if (!(name in given)) fixed[name].value = value;
      if (!keep) for (const name of ["n", "delta"]) if (!(name in given)) fixed[name].value = "";
      if (!keep && !("rounds" in given)) fixed.rounds.value = "1";
      return true;
    },
    blame(name, sentence) {
      for (const [other, one] of Object.entries({ ...own, ...fixed })) one.blame(other === name ? sentence : "");
    },
  };
}

export function toLink(values) {
  return "#" + Object.entries(values).map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join("&");
}

export function fromLink(hash) {
  const { made, by, ...values } = Object.fromEntries(new URLSearchParams(hash.slice(1, 2000)));
  const told = /^[\d.e+-]{1,20}$/.test(made ?? "") && /^[\w.+-]{1,30}$/.test(by ?? "");
  return { values, made: told ? { epsilon: made, by } : null };
}
