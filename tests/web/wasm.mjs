// Answers a file of recorded questions with the engine of a built site, in Node: node wasm.mjs SITE TESTS QUESTIONS ANSWERS

import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [site, tests, questions, answers] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${site}/engine/pyodide.mjs`));
const python = await loadPyodide({ indexURL: `${site}/engine/` });
const folder = python.runPython("import site; site.getsitepackages()[0]");
for (const name of JSON.parse(readFileSync(`${site}/engine/packages.json`))) python.unpackArchive(new Uint8Array(readFileSync(`${site}/engine/${name}`)), "zip", { extractDir: folder });
python.FS.writeFile("/questions", new Uint8Array(readFileSync(questions)));
python.FS.writeFile("/replay.py", readFileSync(`${tests}/replay.py`, "utf8").replace(/^import pytest$/m, "pytest = None").replaceAll("pytest.Config", "object"));
python.runPython(`
import pickle, sys
sys.path.insert(0, "/")
import numpy, replay
assert numpy.arange(2).dtype.itemsize == 4, "this machine counts in 64 bits"
asked = pickle.load(open("/questions", "rb"))
pickle.dump({key: replay.answered(question) for key, question in asked.items()}, open("/answers", "wb"), protocol=4)
`);
writeFileSync(answers, python.FS.readFile("/answers"));
