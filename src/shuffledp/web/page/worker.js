// The public site's engine: the same package as on the command line, run by Python in this worker.

const engine = new URL("engine/", self.location.href).href;
const CORE = ["pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json"];
const fetched = async (name, how = {}) => {
  const response = await fetch(engine + name, how);
  if (!response.ok) throw new Error(`${name}: ${response.status}`);
  return response;
};

async function start() {
  await Promise.all(CORE.map((name) => fetched(name, { method: "HEAD" }))); // Pyodide waits for ever for what is not there
  const { loadPyodide } = await import(`${engine}pyodide.mjs`);
  const [python, packages] = await Promise.all([loadPyodide({ indexURL: engine }), fetched("packages.json").then((list) => list.json())]);
  const site = python.runPython("import site; site.getsitepackages()[0]");
  for (const name of packages) python.unpackArchive(await (await fetched(name)).arrayBuffer(), "zip", { extractDir: site });
  return python.runPython("import json; from shuffledp.web import answer; lambda asked: json.dumps(answer(json.loads(asked)), allow_nan=False)");
}

const fail = (why) => self.postMessage({ broken: `Python could not be started in this browser (${why?.message ?? why}).` });
self.addEventListener("unhandledrejection", (event) => fail(event.reason)); // of the engine's own promises, which nobody else hears of
const started = start();
started.catch(fail);
// One question at a time, in order: the page asks a new one only where it has to.
self.addEventListener("message", async ({ data }) => {
  const answer = await started;
  self.postMessage({ id: data.id, found: JSON.parse(answer(JSON.stringify(data.question))) });
});
