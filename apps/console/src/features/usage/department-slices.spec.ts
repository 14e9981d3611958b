import { describe, expect, it } from 'vitest';
import type { OrgNode, UsageRow } from '../../api/types.js';
import { departmentsAbove, departmentSlices, restGroup } from './department-slices.js';

const row = (groupId: string | null, cost: string, period = '2026-11-01'): UsageRow => ({
  groupId,
  groupName: groupId,
  deleted: false,
  period,
  requests: '1',
  inputTokens: '0',
  cachedInputTokens: '0',
  outputTokens: '0',
  tokens: '0',
  cost,
});
const department = (id: string, parentId: string | null): OrgNode => ({
  id,
  level: 'department',
  parentId,
  name: id,
  status: 'active',
  month: null,
  limits: [],
  version: 1,
});
const nodes = [
  { ...department('acme', null), level: 'enterprise' as const },
  department('eng', null),
  department('ml', 'eng'),
  department('infra', 'eng'),
  department('sales', null),
];
// eng = 5 of ml + 2 of infra + 3 of its own; a deleted department used 1.
const rows = [
  row('eng', '10'),
  row('ml', '5'),
  row('infra', '2'),
  row('sales', '4'),
  row('gone', '1'),
];
const costs = (slices: readonly UsageRow[]) => slices.map(({ groupId, cost }) => [groupId, cost]);

describe('slices by department', () => {
  it('are the topmost departments and the rest, and add up to the whole', () => {
    expect(costs(departmentSlices(rows, [row(null, '15')], nodes, null))).toEqual([
      ['eng', '10'],
      ['sales', '4'],
      [restGroup, '1'],
    ]);
  });

  it('of one department are those just below it and its own use', () => {
    const filtered = [row('eng', '10'), row('ml', '5'), row('infra', '2')];
    expect(costs(departmentSlices(filtered, [row(null, '10')], nodes, 'eng'))).toEqual([
      ['ml', '5'],
      ['infra', '2'],
      [restGroup, '3'],
    ]);
  });

  it('are what the only department on top consists of', () => {
    const own = nodes.slice(1, 4);
    expect(costs(departmentSlices(rows.slice(0, 3), [row(null, '10')], own, null))).toEqual([
      ['ml', '5'],
      ['infra', '2'],
      [restGroup, '3'],
    ]);
  });

  it('are whole period by period', () => {
    const slices = departmentSlices(
      [row('eng', '1', 'a'), row('eng', '2', 'b')],
      [row(null, '1.5', 'a'), row(null, '2', 'b')],
      nodes,
      null,
    );
    expect(
      slices.filter(({ groupId }) => groupId === restGroup).map((r) => [r.period, r.cost]),
    ).toEqual([['a', '0.5']]);
  });
});

it('the departments above one are all up to the top', () => {
  expect([...departmentsAbove(nodes, 'ml')]).toEqual(['eng']);
  expect([...departmentsAbove(nodes, null)]).toEqual([]);
});
