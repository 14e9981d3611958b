import {
  inputTokensOf,
  outputTokensOf,
  usageEventOf,
  type CallStatus,
  type Clock,
  type TokenUsage,
  type UnnumberedUsageEvent,
  type UsageEventDraft,
} from '@weir/domain';
import type { Actual, Lease, Observed } from '@weir/quota';
import { costOf, countedUsage, pricedUsage } from '../admission/reservation.js';
import type { DeliveredText } from '../relay/delivered-text.js';
import type { UsageReport } from '../routes/metered-route.js';

/** How a call ended, seen from the caller. */
export type CallEnd = {
  readonly status: Exclude<CallStatus, 'expired'>;
  readonly report: UsageReport | null;
};

/** What is to be settled, or that nothing is to be charged. */
export type Charge =
  | { readonly kind: 'nothing' }
  | {
      readonly kind: 'usage';
      readonly actual: Actual;
      readonly event: UnnumberedUsageEvent;
      readonly usage: TokenUsage;
      readonly estimated: boolean;
      /** The upstream's numbers contradicted each other. */
      readonly clamped: boolean;
    };

/** An admitted call from dispatch to settlement: what it was admitted with, and what it has used so far. */
export class LiveCall {
  readonly startedAtMs: number;
  /** Where the lease keeper has it; null while it does not. */
  place: number | null = null;
  /** When the lease keeper renews its lease. */
  renewalDueMs = 0;
  private firstTokenAtMs: number | null = null;
  private answered = false;
  private ended = false;

  constructor(
    readonly lease: Lease,
    readonly leaseMs: number,
    readonly draft: UsageEventDraft,
    readonly promptTokens: number,
    readonly delivered: DeliveredText,
    private readonly clock: Clock,
    private readonly onFirstToken?: () => void,
  ) {
    this.startedAtMs = clock.now();
  }

  /** Marks the end of the call. @returns false where it had ended before. */
  markEnded(): boolean {
    const isFirst = !this.ended;
    this.ended = true;
    return isFirst;
  }

  /** The upstream has begun a good answer: from now on the call is not free. */
  markAnswered(): void {
    this.answered = true;
  }

  markFirstToken(): void {
    if (this.firstTokenAtMs !== null) return;
    this.firstTokenAtMs = this.clock.now();
    this.onFirstToken?.();
  }

  /** What the call has used so far, as far as can be seen from here: charged if this process should die. */
  observed(): Observed {
    const usage = countedUsage(this.promptTokens, this.delivered.tokensSoFar());
    return {
      inputTokens: usage.input,
      outputTokens: usage.output,
      costNano: costOf(usage, this.draft.price).nano,
    };
  }

  /**
   * The one rule for what a call is charged, for all routes:
   * 1. what the upstream reports, number by number; the last report wins;
   * 2. else nothing, where the upstream never began a good answer (no connection, no head, 4xx, 5xx);
   * 3. else the counted prompt and what was delivered, marked as estimated: a call that broke off in the middle is not
   *    free, whoever broke it off, and an error's text is no delivery.
   */
  charge({ status, report }: CallEnd): Charge {
    if (report === null && !this.answered) return { kind: 'nothing' };
    const known = this.usageOf(report);
    const usage = pricedUsage(known.usage, this.draft.price);
    const cost = costOf(usage, this.draft.price);
    const { draft } = this;
    // Field by field: a spread into an object of this size takes many times as long.
    const event = usageEventOf(this.lease.id, {
      enterprise: draft.enterprise,
      departments: draft.departments,
      user: draft.user,
      key: draft.key,
      currency: draft.currency,
      modelAsked: draft.modelAsked,
      modelServed: draft.modelServed,
      provider: draft.provider,
      route: draft.route,
      streamed: draft.streamed,
      requestId: draft.requestId,
      attempt: draft.attempt,
      price: draft.price,
      queueWaitMs: draft.queueWaitMs,
      tags: draft.tags,
      kind: 'usage',
      adjusts: null,
      usage,
      costPico: cost.pico.toString(),
      costNano: cost.nano.toString(),
      periodId: this.lease.periodId,
      reservedAt: instant(this.lease.reservedAtMs),
      startedAt: instant(this.startedAtMs),
      firstTokenAt: this.firstTokenAtMs === null ? null : instant(this.firstTokenAtMs),
      endedAt: instant(this.clock.now()),
      status,
      estimated: known.estimated,
      late: false,
    });
    const actual = {
      inputTokens: inputTokensOf(usage),
      outputTokens: outputTokensOf(usage),
      costNano: cost.nano,
    };
    return {
      kind: 'usage',
      actual,
      event,
      usage,
      estimated: known.estimated,
      clamped: known.clamped,
    };
  }

  private usageOf(report: UsageReport | null): {
    usage: TokenUsage;
    estimated: boolean;
    clamped: boolean;
  } {
    if (report === null) {
      const usage = countedUsage(this.promptTokens, this.delivered.total());
      return { usage, estimated: true, clamped: false };
    }
    const { usage, hasInput, hasOutput, clamped } = report;
    if (hasInput && hasOutput) return { usage, estimated: clamped, clamped };
    const input = hasInput ? usage.input : this.promptTokens;
    const output = hasOutput ? usage.output : this.delivered.total();
    return { usage: { ...usage, input, output }, estimated: true, clamped };
  }
}

let secondMs = 0;
let secondText = '1970-01-01T00:00:00.';

/** An instant (whole ms) in ISO 8601. The text of its second is kept: a call's instants, and those of its neighbours, share it. */
function instant(ms: number): string {
  const fraction = ms % 1_000;
  if (ms - fraction !== secondMs) {
    secondMs = ms - fraction;
    secondText = new Date(secondMs).toISOString().slice(0, -4);
  }
  return `${secondText}${String(fraction).padStart(3, '0')}Z`;
}
