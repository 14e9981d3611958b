import { describe, expect, it } from 'vitest';
import type { LimitUse, OrgNode } from '../../api/types.js';
import { barOf, mainBar, nodesNear, prepareTree, visibleRows } from './prepare-tree.js';

const limit = (change: Partial<LimitUse> = {}): LimitUse => ({
  id: `limit-${Math.random()}`,
  scopeLevel: 'department',
  scopeId: 'x',
  metric: 'cost',
  window: 'month',
  model: null,
  amount: '100.00',
  mode: 'hard',
  version: 1,
  used: '10.00',
  reserved: '0.00',
  resetsAt: null,
  ...change,
});
const node = (
  id: string,
  level: OrgNode['level'],
  parentId: string | null,
  limits: LimitUse[] = [],
): OrgNode => ({
  id,
  level,
  parentId,
  name: id,
  status: 'active',
  month: null,
  limits,
  version: 1,
});

const nodes = [
  node('acme', 'enterprise', null, [limit({ amount: '1000.00' })]),
  node('eng', 'department', null, [limit({ amount: '600.00' })]),
  node('ml', 'department', 'eng', [limit({ amount: '700.00' })]),
  node('wei', 'user', 'ml'),
  node('sales', 'department', null, [limit({ amount: '500.00' })]),
];

describe('bars', () => {
  it('are shares of the amount, used and reserved apart', () => {
    expect(barOf(limit({ used: '55.555', reserved: '10' }))).toMatchObject({
      use: { used: 5_555, reserved: 1_000 },
      blocked: false,
    });
  });

  it('tell unknown from nothing, no limit from block', () => {
    expect(barOf(limit({ used: null, reserved: null }))?.use).toBeNull();
    expect(barOf(limit({ used: '0', reserved: '0' }))?.use).toEqual({ used: 0, reserved: 0 });
    expect(barOf(limit({ amount: null }))).toBeNull();
    expect(barOf(limit({ amount: '0' }))?.blocked).toBe(true);
  });

  it('of a node are led by its monthly budget, else by the fullest', () => {
    const rate = limit({
      metric: 'tokens',
      window: 'minute',
      amount: '100',
      used: '99',
      reserved: '0',
    });
    expect(mainBar([rate, limit()])?.limit.metric).toBe('cost');
    const calm = limit({ metric: 'requests', window: 'minute', amount: '100', used: '1' });
    expect(mainBar([calm, rate])?.limit.metric).toBe('tokens');
    expect(mainBar([])).toBeNull();
  });
});

describe('the tree', () => {
  const tree = prepareTree(nodes);

  it('puts departments without a parent below the enterprise', () => {
    expect(tree.roots).toEqual(['acme']);
    expect(tree.byId.get('acme')?.children).toEqual(['eng', 'sales']);
    expect(tree.byId.get('wei')).toMatchObject({ depth: 3, parentId: 'ml' });
  });

  it('says which budget is in force where the own one is above it', () => {
    expect(tree.byId.get('ml')?.abovePath).toEqual({ name: 'eng', amount: '600' });
    expect(tree.byId.get('eng')?.abovePath).toBeNull();
  });

  it('names the nearest budget above a node that has none', () => {
    expect(tree.byId.get('wei')?.limitedBy).toBe('ml');
  });

  it('marks a node whose children were promised more than it has', () => {
    expect(tree.byId.get('acme')?.overCommitted).toBe(11_000);
    expect(tree.byId.get('sales')?.overCommitted).toBeNull();
  });

  it('begins where a manager’s view begins', () => {
    const own = prepareTree(nodes.slice(2, 4));
    expect(own.roots).toEqual(['ml']);
    expect(own.byId.get('ml')?.depth).toBe(0);
  });

  it('shows the way to what a search finds and nothing else', () => {
    const names = (search: string) =>
      visibleRows(tree, new Map([['eng', false]]), search).map(({ entry }) => entry.node.id);
    expect(names('WEI')).toEqual(['acme', 'eng', 'ml', 'wei']);
    expect(names('nothing')).toEqual([]);
    expect(names('')).toEqual(['acme', 'eng', 'sales']);
  });

  it('opens only the top of a large tree at first', () => {
    const many = Array.from({ length: 10_000 }, (_, index) => node(`u${index}`, 'user', 'sales'));
    const large = prepareTree([...nodes, ...many]);
    expect(visibleRows(large, new Map(), '').length).toBe(3);
    expect(visibleRows(large, new Map([['sales', true]]), '').length).toBe(10_003);
  });
});

it('nodes near a limit come fullest first; shadow limits do not count', () => {
  const near = nodesNear(
    [
      node('a', 'user', null, [limit({ used: '85', reserved: '0' })]),
      node('b', 'user', null, [limit({ used: '70', reserved: '25' })]),
      node('c', 'user', null, [limit({ used: '99', reserved: '0', mode: 'shadow' })]),
      node('d', 'user', null, [limit({ used: '79', reserved: '0' })]),
    ],
    8_000,
  );
  expect(near.map(({ node: { id } }) => id)).toEqual(['b', 'a']);
});
