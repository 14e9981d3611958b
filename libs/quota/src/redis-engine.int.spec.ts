import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  actualOf,
  admitted,
  callOf,
  createTestbed,
  eventOf,
  limit,
  noon,
  peek,
  refused,
  requiredUrl,
  tenant,
  type Testbed,
} from './testbed/quota-testbed.js';

const servers = [
  { name: 'one Redis', variable: 'WEIR_TEST_REDIS_URL', cluster: false },
  { name: 'Redis Cluster', variable: 'WEIR_TEST_REDIS_CLUSTER_URL', cluster: true },
];

describe.each(servers)('the engine on $name', ({ variable, cluster }) => {
  let bed: Testbed;

  beforeAll(async () => {
    bed = await createTestbed({ url: requiredUrl(variable, process.env[variable]), cluster });
  });
  afterAll(() => bed.close());

  it('reserves at every level, and settling corrects every level to what was used', async () => {
    const caller = tenant({ 3: [limit({ metric: 'tokens', window: 'month', amount: 100 })] });
    const { lease, remaining } = await admitted(bed.engine, callOf(caller));
    expect(remaining).toMatchObject([{ limit: 100n, remaining: 70n }]);
    for (const scope of await peek(bed.engine, caller)) {
      expect(scope.inFlight).toBe(1);
      expect(scope.month).toMatchObject({ requests: 0n, tokens: 0n, reservedTokens: 30n });
    }
    const actual = actualOf(10, 5);
    const settled = await bed.engine.settle(lease, actual, eventOf(caller, lease, actual));
    expect(settled.outcome).toBe('settled');
    for (const scope of await peek(bed.engine, caller)) {
      expect(scope.inFlight).toBe(0);
      expect(scope.month).toMatchObject({
        requests: 1n,
        tokens: 15n,
        inputTokens: 10n,
        outputTokens: 5n,
        costNano: 70n,
        reservedTokens: 0n,
        reservedCostNano: 0n,
      });
    }
    const refusal = await refused(bed.engine, callOf(caller, { output: 80 }));
    expect(refusal.violations).toMatchObject([
      { limit: 100n, used: 15n, reserved: 0n, requested: 90n },
    ]);
    await bed.setNow(noon);
  });
});
