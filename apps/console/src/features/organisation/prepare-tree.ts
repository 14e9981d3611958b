import type { LimitUse, OrgNode } from '../../api/types.js';
import { basisPoints, scaled, unscaled } from '../../format/decimal.js';

/** One limit as a bar draws it. Shares are basis points of the amount. */
export type LimitBar = {
  readonly limit: LimitUse;
  /** null while the counters cannot be read: unknown is not 0. */
  readonly use: { readonly used: number; readonly reserved: number } | null;
  /** An amount of 0: everything is refused. */
  readonly blocked: boolean;
};

/** A limit with an amount as a bar; null for "no own limit". */
export function barOf(limit: LimitUse): LimitBar | null {
  if (limit.amount === null) return null;
  const amount = scaled(limit.amount);
  return {
    limit,
    use:
      limit.used === null || limit.reserved === null
        ? null
        : {
            used: basisPoints(scaled(limit.used), amount) ?? 0,
            reserved: basisPoints(scaled(limit.reserved), amount) ?? 0,
          },
    blocked: amount === 0n,
  };
}

/** How pressing a limit is: what blocks comes first, then the fullest, and what is not known last. */
export function pressure(bar: LimitBar): number {
  if (bar.blocked) return Number.MAX_SAFE_INTEGER;
  return bar.use === null ? -1 : bar.use.used + bar.use.reserved;
}

const isMonthlyBudget = ({ limit }: LimitBar) =>
  limit.metric === 'cost' && limit.window === 'month' && limit.model === null;

/** The limit that stands for a node in the tree: its monthly budget, else another budget, else the fullest. */
export function mainBar(limits: readonly LimitUse[]): LimitBar | null {
  const bars = limits.flatMap((limit) => barOf(limit) ?? []);
  bars.sort((a, b) => pressure(b) - pressure(a));
  return (
    bars.find(isMonthlyBudget) ??
    bars.find(({ limit }) => limit.metric === 'cost') ??
    bars[0] ??
    null
  );
}

export type TreeEntry = {
  readonly node: OrgNode;
  readonly depth: number;
  readonly children: readonly string[];
  readonly parentId: string | null;
  readonly bar: LimitBar | null;
  /** Another limit of the node that is fuller than the one shown. */
  readonly tighter: LimitBar | null;
  /** The nearest node above with a monthly budget, where the node has none of its own. */
  readonly limitedBy: string | null;
  /** The node's monthly budget is above one that holds over it, so the lower one is in force. */
  readonly abovePath: { readonly name: string; readonly amount: string } | null;
  /** Σ of the children's monthly budgets in basis points of the node's own, where it is more than the whole. */
  readonly overCommitted: number | null;
};

export type Tree = {
  readonly byId: ReadonlyMap<string, TreeEntry>;
  readonly roots: readonly string[];
};

function monthlyBudget(node: OrgNode): string | null {
  const limit = node.limits.find(
    ({ metric, window, model }) => metric === 'cost' && window === 'month' && model === null,
  );
  return limit?.amount ?? null;
}

/** Arranges the flat answer of the server, parents before children, as a tree with what each row needs to show. */
export function prepareTree(nodes: readonly OrgNode[]): Tree {
  const rootId = nodes.find(({ level }) => level === 'enterprise')?.id ?? null;
  const known = new Set(nodes.map(({ id }) => id));
  const children = new Map<string, OrgNode[]>();
  const roots: string[] = [];
  const parents = new Map<string, string>();
  for (const node of nodes) {
    const parentId = node.parentId ?? (node.id === rootId ? null : rootId);
    // A manager's tree starts at the own department: what is above is not sent.
    if (parentId === null || !known.has(parentId)) {
      roots.push(node.id);
      continue;
    }
    parents.set(node.id, parentId);
    children.set(parentId, [...(children.get(parentId) ?? []), node]);
  }

  const byId = new Map<string, TreeEntry>();
  for (const node of nodes) {
    const parentId = parents.get(node.id) ?? null;
    const above = parentId === null ? undefined : byId.get(parentId);
    const below = children.get(node.id) ?? [];
    const bar = mainBar(node.limits);
    const own = monthlyBudget(node);
    const ancestors: TreeEntry[] = [];
    for (
      let entry = above;
      entry;
      entry = entry.parentId === null ? undefined : byId.get(entry.parentId)
    ) {
      ancestors.push(entry);
    }
    const budgets = ancestors.flatMap(({ node: { name }, node: ancestor }) => {
      const amount = monthlyBudget(ancestor);
      return amount === null ? [] : [{ name, amount }];
    });
    const lowest = budgets.toSorted((a, b) => (scaled(a.amount) < scaled(b.amount) ? -1 : 1))[0];
    const promised = below.reduce((sum, child) => sum + scaled(monthlyBudget(child) ?? '0'), 0n);
    const commitment = own === null ? null : basisPoints(promised, scaled(own));
    const tighter = node.limits
      .flatMap((limit) => barOf(limit) ?? [])
      .find(
        (other) =>
          bar !== null &&
          other.limit.id !== bar.limit.id &&
          pressure(other) > pressure(bar) &&
          pressure(other) >= 8_000,
      );
    byId.set(node.id, {
      node,
      depth: above ? above.depth + 1 : 0,
      children: below.map(({ id }) => id),
      parentId,
      bar,
      tighter: tighter ?? null,
      limitedBy: own === null ? (budgets[0]?.name ?? null) : null,
      abovePath:
        own !== null && lowest && scaled(own) > scaled(lowest.amount)
          ? { name: lowest.name, amount: unscaled(scaled(lowest.amount)) }
          : null,
      overCommitted: commitment !== null && commitment > 10_000 ? commitment : null,
    });
  }
  return { byId, roots };
}

export type TreeRow = {
  readonly entry: TreeEntry;
  readonly expanded: boolean | null;
  readonly position: number;
  readonly siblings: number;
};

/** Below this many nodes all of them are in sight at first. */
const openAllMax = 80;

/** Whether a node with children is open before anyone touched it: departments are, their people are not in a large tree. */
function openAtFirst(tree: Tree, entry: TreeEntry): boolean {
  if (tree.byId.size <= openAllMax || entry.depth === 0) return true;
  return false;
}

/**
 * The rows in sight. A search opens the way to each match and leaves the rest out; it looks at names only.
 *
 * @param toggled nodes whose state the user has turned from what it was at first
 */
export function visibleRows(
  tree: Tree,
  toggled: ReadonlyMap<string, boolean>,
  search: string,
): TreeRow[] {
  const wanted = search.trim().toLowerCase();
  let kept: Set<string> | null = null;
  if (wanted !== '') {
    kept = new Set();
    for (const entry of tree.byId.values()) {
      if (!entry.node.name.toLowerCase().includes(wanted)) continue;
      for (
        let at: TreeEntry | undefined = entry;
        at && !kept.has(at.node.id);
        at = at.parentId === null ? undefined : tree.byId.get(at.parentId)
      ) {
        kept.add(at.node.id);
      }
    }
  }
  const rows: TreeRow[] = [];
  const walk = (ids: readonly string[]) => {
    const shown = kept === null ? ids : ids.filter((id) => kept.has(id));
    shown.forEach((id, index) => {
      const entry = tree.byId.get(id);
      if (!entry) return;
      const below = kept === null ? entry.children : entry.children.filter((c) => kept.has(c));
      const expanded =
        below.length === 0 ? null : kept !== null || (toggled.get(id) ?? openAtFirst(tree, entry));
      rows.push({ entry, expanded, position: index + 1, siblings: shown.length });
      if (expanded) walk(below);
    });
  };
  walk(tree.roots);
  return rows;
}

/** Nodes whose fullest hard or soft limit is at least at `points`, the fullest first. */
export function nodesNear(
  nodes: readonly OrgNode[],
  points: number,
): { readonly node: OrgNode; readonly bar: LimitBar }[] {
  return nodes
    .flatMap((node) => {
      const [fullest] = node.limits
        .flatMap((limit) => barOf(limit) ?? [])
        .filter(({ limit }) => limit.mode !== 'shadow')
        .sort((a, b) => pressure(b) - pressure(a));
      return fullest && node.status === 'active' && pressure(fullest) >= points
        ? [{ node, bar: fullest }]
        : [];
    })
    .sort((a, b) => pressure(b.bar) - pressure(a.bar));
}
