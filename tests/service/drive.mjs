// The JavaScript client for the tests: node drive.mjs CLIENT < JSON; prints JSON.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const client = await import(pathToFileURL(process.argv[2]).href);
const hex = (bytes) => Buffer.from(bytes).toString("hex");

class Given {
  constructor(text) {
    this.bytes = Buffer.from(text, "hex");
    this.at = 0;
  }
  words() {
    return new client.Words((bytes) => (bytes.set(this.bytes.subarray(this.at, (this.at += 8))), bytes));
  }
}

const jobs = {
  randomize: ({ jobs }) =>
    jobs.map(([task, cases]) =>
      cases.map(([value, words]) => {
        const given = new Given(words);
        return [hex(client.randomize(task, value, given.words())), given.at / 8];
      }),
    ),
  fresh: ({ task, value, count }) => Array.from({ length: count }, () => hex(client.randomize(task, value))),
  epsilon: ({ samplers }) => samplers.map(client.localEpsilon),
  refused: ({ tasks }) => tasks.map(([task, value]) => {
    try {
      return hex(client.randomize(task, value));
    } catch (error) {
      return error.name;
    }
  }),
  plans: async ({ address, checks }) =>
    Promise.all(checks.map((one) => client.fetchPlan(address, one).then(() => "", (error) => `${error.constructor.name}: ${error.message}`))),
  submit: async ({ address, checks, values }) => {
    try {
      const plan = await client.fetchPlan(address, checks);
      const told = [];
      for (const value of values) told.push((await client.submit(plan, value)).attempts);
      return { told, words: client.explain(plan), epsilon0: plan.epsilon0 };
    } catch (error) {
      return { error: `${error.constructor.name}: ${error.message}` };
    }
  },
};

const { job, ...given } = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(await jobs[job](given)));
