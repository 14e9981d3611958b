import type { UsageRecord } from './usage-record.js';

export const quarterMs = 15 * 60_000;

/** The start of the quarter of an hour (UTC) that an instant falls into, milliseconds since the Unix epoch. */
export function quarterOf(atMs: number): number {
  return Math.floor(atMs / quarterMs) * quarterMs;
}

/** What a slice adds to one roll-up row. */
export type RollupDelta = {
  readonly enterpriseId: string;
  readonly quarterMs: number;
  readonly seriesId: number;
  requests: number;
  retries: number;
  estimated: number;
  input: bigint;
  cachedInput: bigint;
  cacheWrite: bigint;
  audioInput: bigint;
  imageInput: bigint;
  output: bigint;
  reasoning: bigint;
  audioOutput: bigint;
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
    delta.input += BigInt(usage.input);
    delta.cachedInput += BigInt(usage.cachedInput);
    delta.cacheWrite += BigInt(usage.cacheWrite);
    delta.audioInput += BigInt(usage.audioInput);
    delta.imageInput += BigInt(usage.imageInput);
    delta.output += BigInt(usage.output);
    delta.reasoning += BigInt(usage.reasoning);
    delta.audioOutput += BigInt(usage.audioOutput);
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

function emptyDelta(enterpriseId: string, quarter: number, seriesId: number): RollupDelta {
  return {
    enterpriseId,
    quarterMs: quarter,
    seriesId,
    requests: 0,
    retries: 0,
    estimated: 0,
    input: 0n,
    cachedInput: 0n,
    cacheWrite: 0n,
    audioInput: 0n,
    imageInput: 0n,
    output: 0n,
    reasoning: 0n,
    audioOutput: 0n,
    costPico: 0n,
    costNano: 0n,
  };
}

/** Order of lower-case UUID texts, which is PostgreSQL's order of UUIDs too. */
export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
