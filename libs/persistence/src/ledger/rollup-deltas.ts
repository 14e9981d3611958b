import type { UsageRecord } from './usage-record.js';

export const quarterMs = 15 * 60_000;

/** The start of the quarter of an hour (UTC) that an instant falls into, milliseconds since the Unix epoch. */
export function quarterOf(atMs: number): number {
  return Math.floor(atMs / quarterMs) * quarterMs;
}

/** A sum of tokens: a number as long as it is exact, else a bigint. Most sums are small, and bigints are slow. */
export type Tokens = number | bigint;

/** What a slice adds to one roll-up row. */
export type RollupDelta = {
  readonly enterpriseId: string;
  readonly quarterMs: number;
  readonly seriesId: number;
  requests: number;
  retries: number;
  estimated: number;
  input: Tokens;
  cachedInput: Tokens;
  cacheWrite: Tokens;
  audioInput: Tokens;
  imageInput: Tokens;
  output: Tokens;
  reasoning: Tokens;
  audioOutput: Tokens;
  costPico: bigint;
  costNano: bigint;
};

/** A record that is new in the books, with its series. */
export type BookedRecord = { readonly record: UsageRecord; readonly seriesId: number };

/** Sums of newly booked rows per quarter and series, in key order: all transactions lock the rows in the same order. */
export function rollupDeltas(booked: readonly BookedRecord[]): RollupDelta[] {
  const deltas = new Map<string, RollupDelta>();
  for (const { record, seriesId } of booked) {
    const { data } = record.event;
    const quarter = quarterOf(record.reservedAtMs);
    const key = `${quarter}|${seriesId}`;
    let delta = deltas.get(key);
    if (delta === undefined) {
      delta = emptyDelta(data.enterprise.id, quarter, seriesId);
      deltas.set(key, delta);
    }
    if (data.kind === 'usage') {
      delta.requests += 1;
      if (data.attempt > 1) delta.retries += 1;
      if (data.estimated) delta.estimated += 1;
    }
    const { usage } = data;
    delta.input = plus(delta.input, usage.input);
    delta.cachedInput = plus(delta.cachedInput, usage.cachedInput);
    delta.cacheWrite = plus(delta.cacheWrite, usage.cacheWrite);
    delta.audioInput = plus(delta.audioInput, usage.audioInput);
    delta.imageInput = plus(delta.imageInput, usage.imageInput);
    delta.output = plus(delta.output, usage.output);
    delta.reasoning = plus(delta.reasoning, usage.reasoning);
    delta.audioOutput = plus(delta.audioOutput, usage.audioOutput);
    delta.costPico += BigInt(data.costPico);
    delta.costNano += BigInt(data.costNano);
  }
  return [...deltas.values()].sort(
    (a, b) =>
      compare(a.enterpriseId, b.enterpriseId) ||
      a.quarterMs - b.quarterMs ||
      a.seriesId - b.seriesId,
  );
}

/** Exact whatever the size. */
function plus(sum: Tokens, tokens: number): Tokens {
  if (typeof sum === 'bigint') return sum + BigInt(tokens);
  const next = sum + tokens;
  return Number.isSafeInteger(next) ? next : BigInt(sum) + BigInt(tokens);
}

function emptyDelta(enterpriseId: string, quarter: number, seriesId: number): RollupDelta {
  return {
    enterpriseId,
    quarterMs: quarter,
    seriesId,
    requests: 0,
    retries: 0,
    estimated: 0,
    input: 0,
    cachedInput: 0,
    cacheWrite: 0,
    audioInput: 0,
    imageInput: 0,
    output: 0,
    reasoning: 0,
    audioOutput: 0,
    costPico: 0n,
    costNano: 0n,
  };
}

/** Order of lower-case UUID texts, which is PostgreSQL's order of UUIDs too. */
export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
