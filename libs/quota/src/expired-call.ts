import { type UnnumberedUsageEvent, type UsageEventDraft, usageEventOf } from '@weir/domain';
import { estimatedCharge } from './estimated-charge.js';
import type { Actual, Observed } from './quota-engine.js';

/** A call whose gateway is gone, as its lease or its journal tells of it. Instants in ms since the Unix epoch. */
export type ExpiredCall = {
  readonly id: string;
  readonly draft: UsageEventDraft;
  readonly periodId: string;
  readonly reservedAtMs: number;
  readonly endedAtMs: number;
  /** Tokens of the prompt as reserved. */
  readonly inputTokens: number;
  readonly observed: Observed | null;
};

/**
 * What a call is charged when nobody is left to say what it used, and its event (`expired`, marked as estimated): what was
 * last observed; where nothing was, the prompt as it was reserved and no output. It was admitted and most likely sent, and
 * a call that was sent is never free.
 */
export function expiredSettlement(call: ExpiredCall): {
  actual: Actual;
  event: UnnumberedUsageEvent;
} {
  const observed = call.observed ?? {
    inputTokens: call.inputTokens,
    outputTokens: 0,
    costNano: 0n,
  };
  const charge = estimatedCharge(call.draft.price, observed);
  const reservedAt = new Date(call.reservedAtMs).toISOString();
  const event = usageEventOf(call.id, {
    ...call.draft,
    kind: 'usage',
    adjusts: null,
    usage: charge.usage,
    costPico: charge.costPico.toString(),
    costNano: charge.costNano.toString(),
    periodId: call.periodId,
    reservedAt,
    startedAt: reservedAt,
    firstTokenAt: null,
    endedAt: new Date(call.endedAtMs).toISOString(),
    status: 'expired',
    estimated: true,
    late: false,
  });
  const { inputTokens, outputTokens } = observed;
  return { actual: { inputTokens, outputTokens, costNano: charge.costNano }, event };
}
