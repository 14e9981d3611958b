import {
  costPicoOf,
  nanoFromPico,
  noTokens,
  picoPerNano,
  type TokenUsage,
  UnpricedTokenKindError,
  type UsageEventDraft,
} from '@weir/domain';
import type { Observed } from './quota-engine.js';

export type EstimatedCharge = {
  readonly usage: TokenUsage;
  readonly costPico: bigint;
  readonly costNano: bigint;
};

/**
 * What a lease that ran out is charged: the tokens last observed at the price of the reservation. Where the price has no
 * entry for one of the two token kinds, the cost that was observed stands.
 */
export function estimatedCharge(
  price: UsageEventDraft['price'],
  observed: Observed,
): EstimatedCharge {
  const usage = { ...noTokens, input: observed.inputTokens, output: observed.outputTokens };
  try {
    const costPico = costPicoOf(usage, price);
    return { usage, costPico, costNano: nanoFromPico(costPico) };
  } catch (error) {
    if (!(error instanceof UnpricedTokenKindError)) throw error;
    return { usage, costPico: observed.costNano * picoPerNano, costNano: observed.costNano };
  }
}
