import {
  formatAmount,
  formatNano,
  limitFromDocument,
  type Limit,
  type ScopeLevel,
} from '@weir/domain';
import { limitDocumentOf, type Prisma } from '@weir/persistence';
import type { ScopeUsage } from '@weir/quota';
import { limitView } from '../control/views.js';
import type { AnswerOf } from '../http/operation.js';

export type NodeView = AnswerOf<'getOrganisation'>['nodes'][number];
type LimitUseView = NodeView['limits'][number];
type LimitRow = Prisma.QuotaLimitGetPayload<object>;

/** A node of the tree with its limits, before the counters are read. */
export type TreeNode = {
  readonly id: string;
  readonly level: ScopeLevel;
  readonly parentId: string | null;
  readonly name: string;
  readonly status: NodeView['status'];
  readonly version: number;
  readonly limits: readonly LimitRow[];
};

export function engineLimits(node: TreeNode): Limit[] {
  return node.limits.map((row) => limitFromDocument(limitDocumentOf(row)));
}

export function nodeView(node: TreeNode, usage: ScopeUsage | undefined): NodeView {
  return {
    id: node.id,
    level: node.level,
    parentId: node.parentId,
    name: node.name,
    status: node.status,
    month: usage === undefined ? null : monthView(usage),
    limits: limitUses(node, usage),
    version: node.version,
  };
}

export function limitUses(node: TreeNode, usage: ScopeUsage | undefined): LimitUseView[] {
  return node.limits.map((row) => {
    const limit = limitView(row);
    const use = usage?.limits.find(({ limitId }) => limitId === row.id);
    return {
      ...limit,
      used: use === undefined ? null : formatAmount(limit.metric, atLeastZero(use.used)),
      reserved: use === undefined ? null : formatAmount(limit.metric, atLeastZero(use.reserved)),
      resetsAt:
        use === undefined || use.resetsAtMs === null
          ? null
          : new Date(use.resetsAtMs).toISOString(),
    };
  });
}

/** An amount is not negative; a counter could be after an adjustment of more than was used. */
function atLeastZero(count: bigint): bigint {
  return count < 0n ? 0n : count;
}

function monthView({ month, inFlight }: ScopeUsage): NonNullable<NodeView['month']> {
  return {
    periodId: month.periodId,
    requests: month.requests.toString(),
    tokens: month.tokens.toString(),
    cost: formatNano(month.costNano),
    reservedTokens: month.reservedTokens.toString(),
    reservedCost: formatNano(month.reservedCostNano),
    inFlight,
  };
}
