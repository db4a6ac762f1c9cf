// Two engines, one question format: this machine's `shuffledp web`, or Python in a worker of this page.

function server() {
  const page = Array.from(crypto.getRandomValues(new Uint32Array(4)), (word) => word.toString(36)).join("");
  return async (question) => {
    const body = JSON.stringify({ ...question, page });
    const response = await fetch("answer", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    if (!response.ok) throw new Error(await response.text());
    return response.json();
  };
}

function pyodide() {
  const worker = new Worker("worker.js", { type: "module" });
  const waiting = new Map();
  let last = 0;
  let broken = "";
  worker.addEventListener("message", ({ data }) => {
    if (data.broken) broken = data.broken;
    for (const [id, done] of waiting) {
      if (!broken && id !== data.id) continue;
      waiting.delete(id);
      done(broken ? { refusal: broken, knob: "" } : data.found);
    }
  });
  worker.addEventListener("error", () => worker.dispatchEvent(new MessageEvent("message", { data: { broken: "Python could not be started in this browser." } })));
  return (question) => new Promise((done) => {
    if (broken) return done({ refusal: broken, knob: "" });
    waiting.set(++last, done);
    worker.postMessage({ id: last, question });
  });
}

export function engineOf(name) {
  return name === "pyodide" ? pyodide() : server();
}
