/** A value of the plan: a category, or a number. */
export type Value = string | number | boolean;

/** The signed task, checked; `plan` is the protocol with all its parameters. */
export interface Task {
  readonly name: string;
  readonly plan: { readonly protocol: "histogram" | "sum" | "mean"; readonly [parameter: string]: unknown };
  readonly sampler: Sampler | null;
  readonly report_bytes: number;
  readonly analyst: string;
  readonly shuffler: string;
  readonly fingerprint: string;
  readonly id: Uint8Array;
}

/** Whole weights out of 2^64, as texts. */
export type Sampler =
  | { readonly kind: "response" | "unary"; readonly k: number; readonly weights: readonly [string, string] }
  | { readonly kind: "grid"; readonly levels: number; readonly pad: number; readonly noise: readonly string[] };

export interface Plan {
  readonly address: string;
  readonly task: Task;
  /** What one report costs alone, rounded up. */
  readonly epsilon0: number;
  readonly key: Uint8Array;
}

export interface Checks {
  /** The analyst's public key, 64 hexadecimal digits. It comes with the page, not from the server. */
  signer: string;
  /** Of the plan, 32 to 64 hexadecimal digits, with or without dashes. */
  fingerprint?: string;
  /** The most that one report may cost alone. */
  maxEpsilon0?: number;
}

export class PlanError extends Error {}
export class SubmitError extends Error {}

/** Random 64-bit words, from the platform's secure source unless another one is given (for tests). */
export class Words {
  constructor(fill?: (bytes: Uint8Array) => Uint8Array);
  draw(): bigint;
}

export function fetchPlan(address: string, checks: Checks): Promise<Plan>;
export function submit(
  plan: Plan,
  value: Value,
  options?: { attempts?: number; words?: Words },
): Promise<{ attempts: number }>;
export function explain(plan: Plan): string[];
export function randomize(task: Pick<Task, "plan" | "sampler" | "report_bytes">, value: Value, words?: Words): Uint8Array;
export function localEpsilon(sampler: Sampler | null): number;
