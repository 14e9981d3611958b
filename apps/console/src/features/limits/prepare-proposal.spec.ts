import { describe, expect, it } from 'vitest';
import type { LimitUse, NodeDetail } from '../../api/types.js';
import { prepareProposal, usedNow } from './prepare-proposal.js';

const monthly = { metric: 'cost', window: 'month', model: null } as const;
const limit = (change: Partial<LimitUse>): LimitUse => ({
  id: 'l1',
  scopeLevel: 'enterprise',
  scopeId: 'e',
  ...monthly,
  amount: '100.00',
  mode: 'hard',
  version: 1,
  used: '60.00',
  reserved: '5.00',
  resetsAt: null,
  ...change,
});
const node: NodeDetail = {
  id: 'n',
  level: 'department',
  parentId: null,
  name: 'Marketing',
  status: 'active',
  version: 1,
  limits: [],
  month: {
    periodId: '2026-11',
    requests: '10',
    tokens: '1000',
    cost: '40.5',
    reservedTokens: '100',
    reservedCost: '1.5',
    inFlight: 1,
  },
  alsoLimitedBy: [{ level: 'enterprise', id: 'e', name: 'Acme', limits: [limit({})] }],
};

describe('a proposed limit', () => {
  it('is measured against the month when there is no limit yet', () => {
    expect(prepareProposal(node, monthly, '81')).toMatchObject({
      share: { used: 5_000, reserved: 185 },
      refusesNow: false,
      lowerAbove: null,
    });
  });

  it('is measured against the limit on the same counter when there is one', () => {
    const limited = { ...node, limits: [limit({ used: '20', reserved: '0' })] };
    expect(usedNow(limited, monthly)).toEqual({ used: '20', reserved: '0' });
  });

  it('says that calls would be refused when as much is used or reserved', () => {
    expect(prepareProposal(node, monthly, '42').refusesNow).toBe(true);
    expect(prepareProposal(node, monthly, '42.000000001').refusesNow).toBe(false);
    expect(prepareProposal(node, monthly, '0').refusesNow).toBe(true);
  });

  it('names the lower limit above it', () => {
    expect(prepareProposal(node, monthly, '100.01').lowerAbove?.name).toBe('Acme');
    expect(prepareProposal(node, monthly, '100').lowerAbove).toBeNull();
  });

  it('does not guess what is not counted', () => {
    const byMinute = { metric: 'tokens', window: 'minute', model: null } as const;
    expect(usedNow(node, byMinute)).toBeNull();
    expect(prepareProposal(node, byMinute, '100').share).toBeNull();
    expect(usedNow({ ...node, month: null }, monthly)).toBeNull();
  });
});
