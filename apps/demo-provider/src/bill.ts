import { costPico, models, type Model } from './price-list.js';

/**
 * - `finished`: everything was generated and handed over.
 * - `client_aborted`: the caller left first.
 * - `fault`: a fault that was asked for kept the answer from being whole.
 * - `refused`: the request itself was wrong (401, 400, 404); nothing was generated.
 */
export const outcomes = ['finished', 'client_aborted', 'fault', 'refused'] as const;
export type Outcome = (typeof outcomes)[number];

export type BilledCall = {
  /** The id in the answer. */
  id: string;
  /** The caller's `x-request-id`. */
  requestId: string | null;
  model: Model | null;
  promptTokens: number;
  /** Part of the prompt's. */
  cachedTokens: number;
  outputTokens: number;
  streamed: boolean;
  outcome: Outcome;
};

/** One line of the bill as it is served. Costs are pico-USD as integer texts. */
export type BillEntry = {
  seq: number;
  at: string;
  id: string;
  request_id: string | null;
  model: string | null;
  prompt_tokens: number;
  cached_tokens: number;
  output_tokens: number;
  streamed: boolean;
  outcome: Outcome;
  cost_pico: string;
};

export type BillTotals = {
  calls: number;
  outcomes: Record<Outcome, number>;
  prompt_tokens: number;
  cached_tokens: number;
  output_tokens: number;
  cost_pico: string;
};

export type BillReport = {
  last_seq: number;
  total: BillTotals;
  models: Record<string, BillTotals>;
};

const segmentEntries = 16_384;
const noModel = 255;

/** Columns instead of objects: a million entries must fit beside a benchmark. */
class Segment {
  readonly atMs = new Float64Array(segmentEntries);
  readonly promptTokens = new Uint32Array(segmentEntries);
  readonly cachedTokens = new Uint32Array(segmentEntries);
  readonly outputTokens = new Uint32Array(segmentEntries);
  readonly modelIndex = new Uint8Array(segmentEntries);
  readonly outcomeIndex = new Uint8Array(segmentEntries);
  readonly streamed = new Uint8Array(segmentEntries);
  readonly ids: string[] = [];
  readonly requestIds: (string | null)[] = [];
}

/** Sums per model and outcome. Token sums stay below 2^53; costs are derived from them exactly, in BigInt. */
class Sums {
  private readonly rows = new Map<number, Omit<BillTotals, 'cost_pico'>>();

  add(
    modelIndex: number,
    outcome: Outcome,
    promptTokens: number,
    cachedTokens: number,
    outputTokens: number,
  ): void {
    let row = this.rows.get(modelIndex);
    if (row === undefined) {
      row = emptyRow();
      this.rows.set(modelIndex, row);
    }
    row.calls += 1;
    row.outcomes[outcome] += 1;
    row.prompt_tokens += promptTokens;
    row.cached_tokens += cachedTokens;
    row.output_tokens += outputTokens;
  }

  report(lastSeq: number): BillReport {
    const total = emptyRow();
    let totalPico = 0n;
    const byModel: Record<string, BillTotals> = {};
    for (const [index, row] of this.rows) {
      total.calls += row.calls;
      for (const outcome of outcomes) total.outcomes[outcome] += row.outcomes[outcome];
      total.prompt_tokens += row.prompt_tokens;
      total.cached_tokens += row.cached_tokens;
      total.output_tokens += row.output_tokens;
      const model = models[index];
      if (model === undefined) continue;
      const pico = costPico(model, row.prompt_tokens, row.cached_tokens, row.output_tokens);
      totalPico += pico;
      byModel[model.name] = { ...row, outcomes: { ...row.outcomes }, cost_pico: pico.toString() };
    }
    return {
      last_seq: lastSeq,
      total: { ...total, cost_pico: totalPico.toString() },
      models: byModel,
    };
  }
}

function emptyRow(): Omit<BillTotals, 'cost_pico'> {
  return {
    calls: 0,
    outcomes: { finished: 0, client_aborted: 0, fault: 0, refused: 0 },
    prompt_tokens: 0,
    cached_tokens: 0,
    output_tokens: 0,
  };
}

/** The provider's own books: totals for ever, and the last entries (a million unless told otherwise). */
export class Bill {
  private segments: Segment[] = [];
  /** Segments dropped so far; `seq` of an entry is its place since the last reset, from 1. */
  private dropped = 0;
  private length = 0;
  private sums = new Sums();
  private readonly segmentsMax: number;

  constructor(
    private readonly now: () => number,
    entriesMax = 1_000_000,
  ) {
    this.segmentsMax = Math.max(2, Math.ceil(entriesMax / segmentEntries));
  }

  add(call: BilledCall): void {
    const slot = this.length % segmentEntries;
    if (slot === 0) {
      this.segments.push(new Segment());
      if (this.segments.length > this.segmentsMax) {
        this.segments.shift();
        this.dropped += 1;
      }
    }
    const segment = this.segments.at(-1);
    if (segment === undefined) throw new Error('the bill has no segment to write to');
    const modelIndex = call.model === null ? noModel : models.indexOf(call.model);
    segment.atMs[slot] = this.now();
    segment.promptTokens[slot] = call.promptTokens;
    segment.cachedTokens[slot] = call.cachedTokens;
    segment.outputTokens[slot] = call.outputTokens;
    segment.modelIndex[slot] = modelIndex;
    segment.outcomeIndex[slot] = outcomes.indexOf(call.outcome);
    segment.streamed[slot] = call.streamed ? 1 : 0;
    segment.ids.push(call.id);
    segment.requestIds.push(call.requestId);
    this.length += 1;
    this.sums.add(
      modelIndex,
      call.outcome,
      call.promptTokens,
      call.cachedTokens,
      call.outputTokens,
    );
  }

  /** Totals since the last reset; exact however many entries were dropped. */
  report(): BillReport {
    return this.sums.report(this.length);
  }

  /**
   * Totals of the entries after `seq`.
   *
   * @returns undefined when some of them were dropped already: a sum of the rest would be wrong without saying so.
   */
  reportSince(seq: number): BillReport | undefined {
    if (seq < this.dropped * segmentEntries) return undefined;
    const sums = new Sums();
    for (let index = seq; index < this.length; index += 1) {
      const { segment, slot } = this.locate(index);
      sums.add(
        segment.modelIndex[slot] ?? noModel,
        outcomes[segment.outcomeIndex[slot] ?? 0] ?? 'finished',
        segment.promptTokens[slot] ?? 0,
        segment.cachedTokens[slot] ?? 0,
        segment.outputTokens[slot] ?? 0,
      );
    }
    return sums.report(this.length);
  }

  /** The `seq` of the last entry that was made before the instant, or 0. Entries are in order of time. */
  seqBefore(instantMs: number): number {
    let low = this.dropped * segmentEntries;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const { segment, slot } = this.locate(middle);
      if ((segment.atMs[slot] ?? 0) < instantMs) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Up to `limit` entries after `seq`, oldest first, starting with the oldest that is still kept. */
  entries(limit: number, afterSeq: number): BillEntry[] {
    const first = Math.max(afterSeq, this.dropped * segmentEntries);
    const end = Math.min(this.length, first + limit);
    const entries: BillEntry[] = [];
    for (let index = first; index < end; index += 1) entries.push(this.entry(index));
    return entries;
  }

  reset(): void {
    this.segments = [];
    this.dropped = 0;
    this.length = 0;
    this.sums = new Sums();
  }

  private locate(index: number): { segment: Segment; slot: number } {
    const segment = this.segments[Math.floor(index / segmentEntries) - this.dropped];
    if (segment === undefined) throw new RangeError(`the bill has no entry ${index + 1}`);
    return { segment, slot: index % segmentEntries };
  }

  private entry(index: number): BillEntry {
    const { segment, slot } = this.locate(index);
    const model = models[segment.modelIndex[slot] ?? noModel];
    const promptTokens = segment.promptTokens[slot] ?? 0;
    const cachedTokens = segment.cachedTokens[slot] ?? 0;
    const outputTokens = segment.outputTokens[slot] ?? 0;
    return {
      seq: index + 1,
      at: new Date(segment.atMs[slot] ?? 0).toISOString(),
      id: segment.ids[slot] ?? '',
      request_id: segment.requestIds[slot] ?? null,
      model: model?.name ?? null,
      prompt_tokens: promptTokens,
      cached_tokens: cachedTokens,
      output_tokens: outputTokens,
      streamed: segment.streamed[slot] === 1,
      outcome: outcomes[segment.outcomeIndex[slot] ?? 0] ?? 'finished',
      cost_pico:
        model === undefined
          ? '0'
          : costPico(model, promptTokens, cachedTokens, outputTokens).toString(),
    };
  }
}
