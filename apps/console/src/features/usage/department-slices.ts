import type { OrgNode, UsageRow } from '../../api/types.js';
import { scaled, unscaled } from '../../format/decimal.js';

/** The group of what is in none of the departments shown. */
export const restGroup = 'rest';

const figures = [
  'requests',
  'inputTokens',
  'cachedInputTokens',
  'outputTokens',
  'tokens',
  'cost',
] as const;

/** Departments that a chart can put side by side: the parent's id by id. */
function parentsOf(nodes: readonly OrgNode[]): Map<string, string | null> {
  const departments = nodes.filter(({ level }) => level === 'department');
  const known = new Set(departments.map(({ id }) => id));
  return new Map(
    departments.map(({ id, parentId }) => [
      id,
      parentId !== null && known.has(parentId) ? parentId : null,
    ]),
  );
}

/**
 * The rows of a report by department as slices that add up to the whole. The server counts a department with all
 * below it, so that parents and children overlap and must not be stacked. Shown are the departments just below the
 * one that is filtered for, or the topmost ones; what they do not hold (the department's own use, deleted
 * departments) is one more slice, so that each period's sum is the server's.
 *
 * @param totals the same report without grouping
 * @param focus the department that the report is filtered for, or null
 */
export function departmentSlices(
  rows: readonly UsageRow[],
  totals: readonly UsageRow[],
  nodes: readonly OrgNode[],
  focus: string | null,
): UsageRow[] {
  const parents = parentsOf(nodes);
  const childrenOf = (id: string | null) =>
    [...parents].filter(([, parent]) => parent === id).map(([child]) => child);
  let shown = childrenOf(focus);
  // One department alone at the top, as a manager sees it: what it consists of says more.
  if (focus === null && shown.length === 1) {
    const below = childrenOf(shown[0] ?? null);
    if (below.length > 0) shown = below;
  }
  const slices = rows.filter(({ groupId }) => groupId !== null && shown.includes(groupId));
  const rest = totals.flatMap((total) => {
    const parts = slices.filter(({ period }) => period === total.period);
    const left = Object.fromEntries(
      figures.map((figure) => {
        const sum = parts.reduce((so, part) => so + scaled(part[figure]), 0n);
        const difference = scaled(total[figure]) - sum;
        return [figure, unscaled(difference > 0n ? difference : 0n)];
      }),
    ) as Pick<UsageRow, (typeof figures)[number]>;
    if (figures.every((figure) => left[figure] === '0')) return [];
    return [{ ...total, ...left, groupId: restGroup, groupName: null, deleted: false }];
  });
  return [...slices, ...rest];
}

/** The departments above one, which a report filtered for it would only repeat. */
export function departmentsAbove(nodes: readonly OrgNode[], focus: string | null): Set<string> {
  const parents = parentsOf(nodes);
  const above = new Set<string>();
  for (
    let at = focus === null ? null : (parents.get(focus) ?? null);
    at !== null && !above.has(at);
    at = parents.get(at) ?? null
  ) {
    above.add(at);
  }
  return above;
}
