// A client of a running shuffler: fetch the signed plan, check it, randomize, seal twice, submit once.
//
//   const plan = await fetchPlan("https://survey.example/tasks/pets", { signer: "5f0c...", maxEpsilon0: 3 });
//   await submit(plan, "cat");
//
// The signer's key comes with the page, not from the server that is asked.
import { concatenated, newId, seal, sha256 } from "./sealing.js";
import { Words, localEpsilon, randomize } from "./samplers.js";

export { Words, localEpsilon, randomize };

const PURPOSE = new TextEncoder().encode("shuffledp task 1\0");
const LATER = new Set([408, 429, 500, 502, 503, 504]);
const LONGEST_WAIT = 30;

/** A plan that must not be run: not signed by the pinned key, another one, or too revealing. */
export class PlanError extends Error {}

/** The shuffler refused the report, or could not be reached. */
export class SubmitError extends Error {}

/** The task at an address, if its signature, fingerprint and cost are as they must be. */
export async function fetchPlan(address, { signer, fingerprint, maxEpsilon0 } = {}) {
  if (!/^[0-9a-f]{64}$/i.test(signer ?? "")) throw new PlanError("signer must be 64 hexadecimal digits");
  const answer = await fetched(address);
  const content = await checked(answer.task, signer.toLowerCase());
  if (content.format !== "shuffledp task" || content.version !== 1) throw new PlanError("not a task of version 1");
  const plan = JSON.parse(content.plan);
  const print = hex(await sha256(bytesOf(content.plan)));
  if (fingerprint !== undefined && !sameFingerprint(fingerprint, print)) {
    throw new PlanError(`the plan has the fingerprint ${print}, not ${fingerprint} as it must`);
  }
  const task = { ...content, plan, fingerprint: print, id: await sha256(bytesOf(answer.task.text)) };
  const epsilon0 = cost(task);
  if (maxEpsilon0 !== undefined && epsilon0 > maxEpsilon0) {
    throw new PlanError(`one report of this plan costs epsilon0 = ${epsilon0}; maxEpsilon0 is ${maxEpsilon0}`);
  }
  return Object.freeze({ address: address.replace(/\/$/, ""), task, epsilon0, key: await shufflerKey(task, answer.key) });
}

/** Randomize one value, seal it, send it until it is acknowledged: it counts once. */
export async function submit(plan, value, { attempts = 8, words = new Words() } = {}) {
  const report = randomize(plan.task, value, words), id = newId(), analyst = unhex(plan.task.analyst);
  let body = await seal(report, plan.task.id, analyst, plan.key, id);
  for (let attempt = 1; attempt <= attempts; attempt++) {
    const [status, wait] = await posted(`${plan.address}/reports`, body);
    if (status === 202 || status === 409) return { attempts: attempt }; // 409: an earlier attempt arrived
    if (status === 422) {
      // The shuffler has a new key; the report and its id stay.
      const key = await shufflerKey(plan.task, (await fetched(plan.address)).key);
      body = await seal(report, plan.task.id, analyst, key, id);
    } else if (status !== 0 && !LATER.has(status)) {
      throw new SubmitError(`the shuffler refused the report: ${status}`);
    } else if (attempt < attempts) {
      const backoff = Math.min(LONGEST_WAIT, 0.25 * 2 ** attempt) * Math.random();
      await new Promise((done) => setTimeout(done, 1000 * (Math.min(wait, LONGEST_WAIT) + backoff)));
    }
  }
  throw new SubmitError(`the shuffler did not acknowledge the report in ${attempts} attempts`);
}

/** In words: what is sent if somebody answers, and what that protects. */
export function explain(plan) {
  const { plan: asked, sampler } = plan.task;
  const drawn =
    sampler.kind === "response"
      ? `With probability ${share(sampler.weights[0])} your ${asked.protocol === "histogram" ? "true answer" : "number, rounded,"} is sent, otherwise a random other one.`
      : sampler.kind === "unary"
        ? `For each possible answer one bit is sent; the bit of yours is on with probability ${share(sampler.weights[0])}, any other with ${share(sampler.weights[1])}.`
        : "Random noise is added to your number before it is sent.";
  return [
    `${drawn} So no report is proof of what you answered.`,
    "The report is sealed on this device: the server that collects it cannot read it, and those who read it are not told whose it is. This holds unless the two work together.",
    `Mixed among the reports of ${asked.n} people, whatever they show is at most ${times(asked.epsilon)} times as likely with your answer as with any other, but for a probability of ${asked.delta} (epsilon ${asked.epsilon}). Alone, a report is ${ceil(plan.epsilon0)}-differentially private.`,
  ];
}

const share = (weight) => `${((100 * Number(weight)) / 2 ** 64).toFixed(1)}%`;
const times = (epsilon) => (Math.ceil(Math.exp(epsilon) * 100) / 100).toString();
const ceil = (number) => (Math.ceil(number * 1e4) / 1e4).toString();

function cost(task) {
  const { plan, sampler } = task;
  if (sampler === null) throw new PlanError("this plan's randomizer is not known to this client");
  try {
    const epsilon0 = localEpsilon(sampler), histogram = plan.protocol === "histogram";
    const inputs = sampler.kind === "grid" ? sampler.levels + 1 : sampler.k;
    if (histogram ? inputs !== plan.categories.length || sampler.kind === "grid" : sampler.kind === "unary") throw RangeError();
    return epsilon0;
  } catch {
    throw new PlanError("the sampler of the task does not fit its plan");
  }
}

async function checked(signed, signer) {
  if (typeof signed?.text !== "string" || typeof signed.signature !== "string" || signed.signer !== signer) {
    throw new PlanError(`not signed by ${signer}`);
  }
  const key = await crypto.subtle.importKey("raw", unhex(signer), { name: "Ed25519" }, false, ["verify"]);
  const text = concatenated(PURPOSE, bytesOf(signed.text));
  if (!(await crypto.subtle.verify({ name: "Ed25519" }, key, unhex(signed.signature), text))) {
    throw new PlanError("the signature does not fit the text");
  }
  return JSON.parse(signed.text);
}

async function shufflerKey(task, signed) {
  const content = await checked(signed, task.shuffler);
  if (content.format !== "shuffledp shuffler key") throw new PlanError("not a key of a shuffler");
  return unhex(content.key);
}

async function fetched(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new PlanError(`no task at ${address}: ${answer.status}`);
  return answer.json();
}

async function posted(address, body) {
  try {
    const headers = { "Content-Type": "application/octet-stream" };
    const options = { method: "POST", body, headers, credentials: "omit", referrerPolicy: "no-referrer" };
    const answer = await fetch(address, { ...options, signal: AbortSignal.timeout(10000) });
    return [answer.status, Number(answer.headers.get("Retry-After") ?? 0) || 0];
  } catch {
    return [0, 0]; // no answer
  }
}

function sameFingerprint(pinned, found) {
  const digits = pinned.replaceAll("-", "").toLowerCase();
  return digits.length >= 32 && found.startsWith(digits);
}

const bytesOf = (text) => new TextEncoder().encode(text);
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

function unhex(text) {
  if (typeof text !== "string" || !/^([0-9a-f]{2})+$/i.test(text)) throw new PlanError("not hexadecimal");
  return Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));
}
