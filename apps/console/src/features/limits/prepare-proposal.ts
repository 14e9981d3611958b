import type { Metric, Window } from '@weir/domain';
import type { LimitUse, NodeDetail } from '../../api/types.js';
import { basisPoints, scaled } from '../../format/decimal.js';

type Counted = { metric: Metric; window: Window | null; model: string | null };

const sameCounter = (a: Counted, b: Counted) =>
  a.metric === b.metric && a.window === b.window && a.model === b.model;

/**
 * What a node has used of a counter now, as far as it is known here: from a limit on the same counter, or from the
 * month's figures. null when it is not counted yet.
 */
export function usedNow(
  node: NodeDetail,
  counter: Counted,
): { used: string; reserved: string } | null {
  const limit = node.limits.find((other) => sameCounter(other, counter));
  if (limit && limit.used !== null && limit.reserved !== null) {
    return { used: limit.used, reserved: limit.reserved };
  }
  const { month } = node;
  if (!month || counter.window !== 'month' || counter.model !== null) return null;
  switch (counter.metric) {
    case 'cost':
      return { used: month.cost, reserved: month.reservedCost };
    case 'tokens':
      return { used: month.tokens, reserved: month.reservedTokens };
    case 'requests':
      return { used: month.requests, reserved: '0' };
    default:
      return null;
  }
}

export type Proposal = {
  /** Shares of the proposed amount in basis points; null when the use is not known. */
  readonly share: { readonly used: number; readonly reserved: number } | null;
  /** What is used and reserved is already at or above the amount: calls would be refused at once. */
  readonly refusesNow: boolean;
  /** A limit above the node on the same counter that is lower, so it would stay the one in force. */
  readonly lowerAbove: { readonly name: string; readonly limit: LimitUse } | null;
};

/** What a proposed amount would mean, worked out from the live figures. */
export function prepareProposal(node: NodeDetail, counter: Counted, amount: string): Proposal {
  const now = usedNow(node, counter);
  const whole = scaled(amount);
  const used = now && basisPoints(scaled(now.used), whole);
  const reserved = now && basisPoints(scaled(now.reserved), whole);
  const lower = node.alsoLimitedBy
    .flatMap(({ name, limits }) =>
      limits
        .filter((limit) => sameCounter(limit, counter) && limit.mode === 'hard')
        .flatMap((limit) =>
          limit.amount !== null && scaled(limit.amount) < whole
            ? [{ name, limit, amount: scaled(limit.amount) }]
            : [],
        ),
    )
    .sort((a, b) => (a.amount < b.amount ? -1 : 1))[0];
  return {
    share: used === null || reserved === null ? null : { used, reserved },
    refusesNow: now !== null && scaled(now.used) + scaled(now.reserved) >= whole,
    lowerAbove: lower ? { name: lower.name, limit: lower.limit } : null,
  };
}
