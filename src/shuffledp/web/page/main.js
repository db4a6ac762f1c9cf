// The page: knobs make a question, an engine answers it, and no number is shown beside knobs it does not belong to.
// All logic is in shuffledp.web.answer; texts are set as text, never as markup.

import { engineOf } from "./engine.js";
import { fromLink, knobs, toLink } from "./knobs.js";
import { byId, clear, show } from "./show.js";

const known = JSON.parse(byId("known").textContent);
const PARTS = ["epsilon", "curve", "compare", "honest"];
const PAUSE = 150; // milliseconds after the last move of a knob
const PATIENCE = 1500; // milliseconds that a running question may go on beside a newer one
const wait = (time) => new Promise((done) => setTimeout(done, time));

const engine = engineOf(document.documentElement.dataset.engine);
const board = knobs(known.catalogue, () => ask());
let newest = 0;
let running = Promise.resolve();
let solution = null;
let made = null; // what a link says that it was made with

// One at a time, in order: a target waits for the part that is computed, and the next part for the target.
function reply(question, mine) {
  const asked = () => (mine === newest ? engine(question) : { refusal: "", knob: "" });
  running = running.then(asked).catch(() => ({ refusal: "The calculator does not answer. Is it still running?", knob: "" }));
  return running;
}

async function ask(early = {}) {
  const mine = ++newest;
  clear();
  forget();
  const question = board.question();
  if (!early.epsilon) {
    await wait(PAUSE);
    if (mine !== newest) return;
    await Promise.race([running, wait(PATIENCE)]);
    if (mine !== newest) return;
    running = Promise.resolve(); // what still runs is of no use: the engine is told so by the next question
  }
  for (const part of PARTS) {
    if (mine !== newest) return;
    const found = early[part] ?? (await reply({ ...question, ask: part }, mine));
    if (mine !== newest) return;
    show(part, found);
    if (part === "epsilon") {
      board.blame(found.refusal ? found.knob : "", found.refusal ?? "");
      if (found.refusal) return;
      remember(found);
    }
  }
}

function remember(found) {
  const link = toLink(found.link);
  if (toLink(fromLink(location.hash).values) !== link) history.pushState(null, "", link);
  byId("link").textContent = location.href.split("#")[0] + toLink({ ...found.link, made: found.epsilon.shown, by: found.version });
  const changed = made && made.epsilon !== found.epsilon.shown;
  byId("made").textContent = changed ? `The link that you followed was made with shuffledp ${made.by}, which certified ${made.epsilon}.` : "";
  made = null;
}

function follow() {
  const found = fromLink(location.hash);
  made = found.made;
  const fresh = Object.keys(found.values).length === 0;
  board.set(fresh ? known.question : found.values);
  return fresh;
}

function forget() {
  solution = null;
  byId("found").textContent = "";
  byId("use").hidden = true;
}

async function find(target) {
  const mine = newest;
  forget();
  byId("found").classList.remove("no");
  byId("found").textContent = "Looking for it …";
  const found = await reply({ ...board.question(), ask: "target", target }, mine);
  if (mine !== newest) return;
  byId("found").textContent = found.refusal ?? found.sentence;
  byId("found").classList.toggle("no", Boolean(found.refusal));
  solution = found.refusal ? null : found;
  byId("use").hidden = !solution;
}

async function copy(text, button) {
  const name = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Copying is not allowed here";
  }
  byId("said").textContent = button.textContent;
  setTimeout(() => (button.textContent = name), 1600);
}

byId("find").addEventListener("click", () => find({ solve_for: byId("solve").value, epsilon: byId("wanted").value }));
byId("find-error").addEventListener("click", () => find({ margin: `${byId("margin").value.replace("%", "")}%` }));
byId("use").addEventListener("click", () => solution && board.set({ [solution.parameter]: String(solution.value) }, true) && ask());
byId("print").addEventListener("click", () => window.print());
byId("copy-link").addEventListener("click", (event) => copy(byId("link").textContent, event.target));
document.addEventListener("copy-text", (event) => copy(event.detail.text, event.detail.button));
window.addEventListener("popstate", () => (follow(), ask()));
byId("knobs").addEventListener("submit", (event) => event.preventDefault());

document.body.classList.add("running");
byId("version").textContent = known.version;
ask(follow() ? known.answers : {});
