import { explain, fetchPlan, submit } from "shuffledp-client";
import { maxEpsilon0, question, signer, task } from "./config.js";

const at = (id) => document.getElementById(id);
const answers = at("answers"), send = at("send"), state = at("state");
const asked = `answered ${task}`;
at("question").textContent = question;

function ask({ protocol, categories, low, high }) {
  if (protocol !== "histogram") {
    const input = Object.assign(document.createElement("input"), { type: "number", name: "answer", min: low, max: high });
    answers.append(Object.assign(input, { step: "any", required: true }));
    return () => input.valueAsNumber;
  }
  for (const [place, category] of categories.entries()) {
    const choice = Object.assign(document.createElement("input"), { type: "radio", name: "answer", value: place });
    const label = document.createElement("label");
    label.append(Object.assign(choice, { required: true }), ` ${category}`);
    answers.append(label);
  }
  return () => categories[Number(new FormData(at("survey")).get("answer"))];
}

function paragraph(text) {
  const made = document.createElement("p");
  made.textContent = text;
  return made;
}

try {
  const plan = await fetchPlan(new URL(task, location.href).href, { signer, maxEpsilon0 });
  const answer = ask(plan.task.plan);
  at("means").append(...explain(plan).map(paragraph));
  at("fingerprint").textContent = plan.task.fingerprint.slice(0, 32).match(/.{8}/g).join("-");
  const before = localStorage.getItem(asked) !== null;
  state.textContent = before ? "You have answered already: once is enough." : "";
  answers.disabled = send.disabled = before;
  at("survey").addEventListener("submit", async (event) => {
    event.preventDefault();
    const value = answer();
    answers.disabled = send.disabled = true; // one answer, one report: the client sends it again if it must
    state.textContent = "Sending ...";
    try {
      await submit(plan, value);
      localStorage.setItem(asked, "yes"); // not the answer
      state.textContent = "Thank you. Your randomized report is sealed and stored.";
    } catch (error) {
      state.textContent = `Not sent: ${error.message}`;
    }
  });
} catch (error) {
  state.textContent = `This survey cannot be trusted, nothing is sent: ${error.message}`;
}
