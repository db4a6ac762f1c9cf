// The samplers of the Python package, draw for draw: from the same random words come the same reports.
// All probabilities are whole weights out of 2^64 that the signed task carries; nothing is computed in floating
// point but the place of a number on its grid, by the same operations as in Python.

const WORD = 1n << 64n;

/** Random 64-bit words, from the platform's secure source. */
export class Words {
  /** @param {(bytes: Uint8Array) => Uint8Array} [fill] another source, for tests */
  constructor(fill = (bytes) => crypto.getRandomValues(bytes)) {
    this.fill = fill;
  }

  draw() {
    return new DataView(this.fill(new Uint8Array(8)).buffer).getBigUint64(0, true);
  }
}

/** The randomized report of one value, as bytes. Throws a RangeError for a value outside of the domain. */
export function randomize(task, value, words = new Words()) {
  const { plan, sampler } = task;
  if (sampler === null) throw new RangeError("this plan's randomizer is not known to this client");
  const size = task.report_bytes;
  if (plan.protocol === "histogram") {
    const place = placeOf(plan, value);
    return sampler.kind === "unary" ? unary(sampler, place, words) : wholeNumber(response(sampler, place, words), size);
  }
  const number = numberOf(plan, value);
  if (sampler.kind === "grid") return wholeNumber(grid(plan, sampler, number, words), size);
  return wholeNumber(response(sampler, rounded(plan, sampler.k - 1, number, words), words), size);
}

function placeOf(plan, value) {
  const place = plan.categories.indexOf(value);
  if (place >= 0) return place;
  if (plan.other !== null) return plan.categories.indexOf(plan.other);
  throw new RangeError("the value is none of the categories");
}

function numberOf(plan, value) {
  if (typeof value !== "number" || Number.isNaN(value)) throw new RangeError("the value is no number");
  if (plan.outside === "clip") return Math.min(Math.max(value, plan.low), plan.high);
  if (value < plan.low || value > plan.high) throw new RangeError("the number is outside of the interval");
  return value;
}

/** k-ary randomized response: words below (k - 1) b give the j-th value after the truth, others the truth. */
function response({ k, weights }, place, words) {
  const [a, b] = weights.map(BigInt);
  const last = BigInt(k - 1), total = a + last * b;
  let drawn = words.draw();
  while (drawn >= total) drawn = words.draw();
  const step = drawn / b;
  return (place + 1 + Number(step < last ? step : last)) % k;
}

/** One noisy bit per category, packed with the least significant bit first. */
function unary({ k, weights }, place, words) {
  const [own, other] = weights.map(BigInt);
  const bytes = new Uint8Array(Math.ceil(k / 8));
  for (let i = 0; i < k; i++) if (words.draw() < (i === place ? own : other)) bytes[i >> 3] |= 1 << (i & 7);
  return bytes;
}

function placeOnGrid(plan, levels, number) {
  const place = ((number - plan.low) / (plan.high - plan.low)) * levels;
  return Math.min(Math.max(place, 0), levels);
}

/** A number moved at random to one of its two neighbours on the grid, keeping its mean. */
function rounded(plan, levels, number, words) {
  const place = placeOnGrid(plan, levels, number), below = Math.floor(place);
  return below + (words.draw() < BigInt(Math.floor((place - below) * 2 ** 64)) ? 1 : 0);
}

/** Whole-number noise about a randomly rounded grid point, clamped. */
function grid(plan, { levels, pad, noise }, number, words) {
  const place = placeOnGrid(plan, levels, number), below = Math.floor(place);
  const up = words.draw() >> 11n < BigInt(Math.floor((place - below) * 2 ** 53)) ? 1 : 0;
  const reach = levels + pad, drawn = words.draw();
  let end = 0n, outcome = -1;
  while (drawn >= end) end += BigInt(noise[Math.abs(++outcome - reach)]);
  return Math.min(Math.max(below + up + outcome - reach + pad, 0), levels + 2 * pad);
}

function wholeNumber(value, size) {
  const bytes = new Uint8Array(size);
  for (let i = 0, rest = BigInt(value); i < size; i++, rest >>= 8n) bytes[i] = Number(rest & 255n);
  return bytes;
}

/** What one report costs alone: the largest log ratio of two inputs' weights, rounded up. */
export function localEpsilon(sampler) {
  const ratio = { response: responseRatio, unary: unaryRatio, grid: gridRatio }[sampler?.kind];
  if (!ratio) throw new RangeError("this plan's randomizer is not known to this client");
  const [high, low] = ratio(sampler);
  return Math.log(Number(high) / Number(low)) * (1 + 1e-12) + 1e-15;
}

function responseRatio({ k, weights }) {
  const [a, b] = weights.map(BigInt);
  require_(Number.isInteger(k) && k >= 2 && b >= 1n && a >= b && a + BigInt(k - 1) * b <= WORD);
  return [a, b];
}

function unaryRatio({ weights }) {
  const [own, other] = weights.map(BigInt);
  require_(0n < other && other <= own && own < WORD);
  return [own * (WORD - other), other * (WORD - own)];
}

function gridRatio({ levels, pad, noise }) {
  const weights = noise.map(BigInt), beyond = [];
  require_(weights.length === levels + pad + 1 && weights.every((weight) => weight > 0n));
  weights.reduceRight((sum, weight, d) => (beyond[d] = sum + weight), 0n);
  require_(beyond[0] + beyond[1] === WORD);
  let worst = [1n, 1n];
  for (let y = -pad; y <= levels + pad; y++) {
    let high = 0n, low = WORD;
    for (let x = 0; x <= levels; x++) {
      const d = Math.abs(y - x), weight = y === -pad || y === levels + pad ? beyond[d] : weights[d];
      if (weight > high) high = weight;
      if (weight < low) low = weight;
    }
    if (high * worst[1] > worst[0] * low) worst = [high, low];
  }
  return worst;
}

function require_(holds) {
  if (!holds) throw new RangeError("the weights of the task are none");
}
