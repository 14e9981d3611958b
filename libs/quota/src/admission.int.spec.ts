import { newId, type Limit, type Metric, type Window } from '@weir/domain';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AdmitResult, Lease, QuotaEngine } from './quota-engine.js';
import {
  actualOf,
  admitted,
  callOf,
  type CallShape,
  costOf,
  createTestbed,
  eventOf,
  limit,
  noon,
  peek,
  refused,
  requiredUrl,
  type Tenant,
  tenant,
  type Testbed,
} from './testbed/quota-testbed.js';
import { servers } from './testbed/servers.js';

const secondMs = 1_000;
const minuteMs = 60_000;

describe.each(servers)('admission on $name', ({ variable, cluster }) => {
  let bed: Testbed;
  let engine: QuotaEngine;

  beforeAll(async () => {
    bed = await createTestbed({ url: requiredUrl(variable, process.env[variable]), cluster });
    engine = bed.engine;
  });
  afterAll(() => bed.close());

  const settle = async (caller: Tenant, lease: Lease, input: number, output: number) => {
    const actual = actualOf(input, output);
    return engine.settle(lease, actual, eventOf(caller, lease, actual));
  };
  const usedAndReserved = async (caller: Tenant, scope = 3) => {
    const usage = (await peek(engine, caller))[scope];
    if (!usage) throw new Error('no such scope');
    return usage.month;
  };

  it('reserves at every level, and settling corrects every level to what was used', async () => {
    const caller = tenant({ 3: [limit({ metric: 'tokens', window: 'month', amount: 100 })] });
    const { lease, remaining } = await admitted(engine, callOf(caller));
    expect(remaining).toMatchObject([{ limit: 100n, remaining: 70n }]);
    for (const scope of await peek(engine, caller)) {
      expect(scope.inFlight).toBe(1);
      expect(scope.month).toMatchObject({ requests: 0n, tokens: 0n, reservedTokens: 30n });
    }
    expect((await settle(caller, lease, 10, 5)).outcome).toBe('settled');
    for (const scope of await peek(engine, caller)) {
      expect(scope.inFlight).toBe(0);
      expect(scope.month).toMatchObject({
        requests: 1n,
        tokens: 15n,
        inputTokens: 10n,
        outputTokens: 5n,
        costNano: costOf(10, 5),
        reservedTokens: 0n,
        reservedCostNano: 0n,
      });
    }
    const { violations } = await refused(engine, callOf(caller, { output: 80 }));
    expect(violations).toMatchObject([{ limit: 100n, used: 15n, reserved: 0n, requested: 90n }]);
  });

  it('admits exactly as many of 10,000 parallel calls over four connections as the budget holds', async () => {
    const room = 137;
    const caller = tenant({
      0: [limit({ metric: 'cost', window: 'month', amount: costOf(10, 20) * BigInt(room) })],
    });
    const engines = [engine, await bed.another(), await bed.another(), await bed.another()];
    const results = await Promise.all(
      Array.from({ length: 10_000 }, (_, index) =>
        (engines[index % engines.length] ?? engine).admit(callOf(caller)),
      ),
    );
    expect(results.filter(({ outcome }) => outcome === 'admitted')).toHaveLength(room);
    expect(results.filter(({ outcome }) => outcome === 'refused')).toHaveLength(10_000 - room);
    const [usage] = await peek(engine, caller);
    expect(usage?.month.reservedCostNano).toBe(costOf(10, 20) * BigInt(room));
  });

  it('admits the same total whether one gateway serves the load or five join while it runs', async () => {
    const totals: number[] = [];
    for (const gateways of [1, 5]) {
      const caller = tenant({ 1: [limit({ metric: 'tokens', window: 'day', amount: 30 * 300 })] });
      const engines = [engine];
      const results: AdmitResult[] = [];
      for (let wave = 0; wave < 10; wave += 1) {
        if (engines.length < gateways) engines.push(await bed.another());
        const calls = Array.from({ length: 60 }, (_, index) =>
          (engines[index % engines.length] ?? engine).admit(callOf(caller)),
        );
        results.push(...(await Promise.all(calls)));
      }
      totals.push(leasesOf(results).length);
    }
    expect(totals).toEqual([300, 300]);
  });

  it('never reserves more than 100 tokens a minute for parallel calls of up to 175', async () => {
    const caller = tenant({ 3: [limit({ metric: 'tokens', window: 'minute', amount: 100 })] });
    const sizes = [175, 60, 40, 100, 1];
    const results = await Promise.all(
      sizes.map((size) => engine.admit(callOf(caller, { input: 0, output: size }))),
    );
    const taken = results.reduce(
      (sum, result, index) => sum + (result.outcome === 'admitted' ? (sizes[index] ?? 0) : 0),
      0,
    );
    expect(taken).toBe(100);
    const impossible = results[0];
    expect(impossible).toMatchObject({ outcome: 'refused', retryAfterMs: null });
    expect(impossible?.outcome === 'refused' && impossible.violations[0]?.impossible).toBe(true);
  });

  it('knows no trusted shortcut: 200 parallel calls of a rich user never make the balance negative', async () => {
    const balance = costOf(10, 20) * 100n;
    const caller = tenant({ 2: [limit({ metric: 'cost', window: 'total', amount: balance })] });
    const results = await Promise.all(
      Array.from({ length: 200 }, () => engine.admit(callOf(caller))),
    );
    const leases = leasesOf(results);
    expect(leases).toHaveLength(100);
    await Promise.all(leases.map((lease) => settle(caller, lease, 10, 20)));
    const limits = (await peek(engine, caller))[2]?.limits;
    expect(limits).toMatchObject([{ used: balance, reserved: 0n }]);
    await refused(engine, callOf(caller, { input: 1, output: 0 }));
  });

  it('refuses 45 of 50 streams at once on a budget for 5', async () => {
    const caller = tenant({
      1: [limit({ metric: 'tokens', window: 'day', amount: 30 * 5 })],
    });
    const results = await Promise.all(
      Array.from({ length: 50 }, () => engine.admit(callOf(caller))),
    );
    expect(leasesOf(results)).toHaveLength(5);
  });

  it('never lets more than 10 of 500 parallel calls over 4 gateways run at once', async () => {
    const caller = tenant({ 3: [limit({ metric: 'concurrency', amount: 10 })] });
    const engines = [engine, await bed.another(), await bed.another(), await bed.another()];
    let running = 0;
    let most = 0;
    let served = 0;
    await Promise.all(
      Array.from({ length: 500 }, async (_, index) => {
        const own = engines[index % engines.length] ?? engine;
        for (;;) {
          const result = await own.admit(callOf(caller));
          if (result.outcome !== 'admitted') continue;
          running += 1;
          most = Math.max(most, running);
          // Counted down before the settle is sent: afterwards another may already have the slot.
          const actual = actualOf(1, 1);
          running -= 1;
          await own.settle(result.lease, actual, eventOf(caller, result.lease, actual));
          served += 1;
          return;
        }
      }),
    );
    expect(served).toBe(500);
    expect(most).toBeLessThanOrEqual(10);
    expect((await peek(engine, caller)).map(({ inFlight }) => inFlight)).toEqual([0, 0, 0, 0]);
  });

  it('holds exactly 10 slots of 500 parallel calls when none ends', async () => {
    const caller = tenant({ 0: [limit({ metric: 'concurrency', amount: 10 })] });
    const results = await Promise.all(
      Array.from({ length: 500 }, () => engine.admit(callOf(caller))),
    );
    expect(leasesOf(results)).toHaveLength(10);
    const refusal = await refused(engine, callOf(caller));
    expect(refusal.violations[0]).toMatchObject({ used: 10n, requested: 1n, limit: 10n });
    expect(refusal.retryAfterMs).toBeGreaterThan(0);
  });

  it('leaves the same bytes at every level after a refusal', async () => {
    const caller = tenant(
      {
        0: [limit({ metric: 'cost', window: 'month', amount: 10n ** 12n })],
        1: [limit({ metric: 'requests', window: 'minute', amount: 100 })],
        2: [limit({ metric: 'tokens', window: 'hour', amount: 10_000 })],
        4: [limit({ metric: 'concurrency', amount: 1 })],
      },
      { depth: 5 },
    );
    await admitted(engine, callOf(caller));
    const before = await bed.dump(caller.shard);
    await bed.setNow(bed.now() + 7 * secondMs);
    await refused(engine, callOf(caller));
    expect(await bed.dump(caller.shard)).toEqual(before);
    await bed.setNow(noon);
  });

  const kinds: readonly { metric: Metric; window: Window | null; amount: number | bigint }[] = [
    { metric: 'concurrency', window: null, amount: 1 },
    { metric: 'requests', window: 'second', amount: 1 },
    { metric: 'requests', window: 'minute', amount: 1 },
    { metric: 'requests', window: 'hour', amount: 1 },
    { metric: 'requests', window: 'day', amount: 1 },
    { metric: 'tokens', window: 'minute', amount: 30 },
    { metric: 'tokens', window: 'hour', amount: 30 },
    { metric: 'tokens', window: 'week', amount: 30 },
    { metric: 'input_tokens', window: 'minute', amount: 10 },
    { metric: 'input_tokens', window: 'month', amount: 10 },
    { metric: 'output_tokens', window: 'hour', amount: 20 },
    { metric: 'output_tokens', window: 'total', amount: 20 },
    { metric: 'cost', window: 'day', amount: costOf(10, 20) },
    { metric: 'cost', window: 'week', amount: costOf(10, 20) },
    { metric: 'cost', window: 'month', amount: costOf(10, 20) },
    { metric: 'cost', window: 'total', amount: costOf(10, 20) },
  ];
  const levels = [0, 1, 2, 3, 4, 5, 6, 7];

  it.each(kinds)(
    'refuses by $metric per $window at each of 8 levels alone, names that level, and admits at used = limit − 1',
    async ({ metric, window, amount }) => {
      for (const level of levels) {
        const only = limit({ metric, window, amount });
        const caller = tenant({ [level]: [only] }, { depth: 8 });
        const { remaining } = await admitted(engine, callOf(caller));
        expect(remaining).toMatchObject([{ limitId: only.id, remaining: 0n }]);
        const { violations } = await refused(engine, callOf(caller));
        expect(violations).toMatchObject([
          {
            scope: { id: caller.path[level]?.id, level: caller.path[level]?.level },
            limitId: only.id,
            metric,
            window,
            limit: BigInt(amount),
            impossible: false,
          },
        ]);
        const [first] = violations;
        expect((first?.used ?? 0n) + (first?.reserved ?? 0n)).toBe(BigInt(amount));

        const tight = tenant(
          { [level]: [limit({ metric, window, amount: BigInt(amount) - 1n })] },
          { depth: 8 },
        );
        await refused(engine, callOf(tight));
      }
    },
  );

  it('reports every limit in the way, the narrowest scope first, and waits for the longest', async () => {
    const caller = tenant({
      0: [limit({ metric: 'cost', window: 'day', amount: 1n })],
      1: [limit({ metric: 'tokens', window: 'minute', amount: 40 })],
      3: [
        limit({ metric: 'concurrency', amount: 1 }),
        limit({ metric: 'requests', window: 'total', amount: 1 }),
      ],
    });
    const roomy = {
      ...caller,
      path: caller.path.map((scope) => ({ ...scope, limits: [] as Limit[] })),
    };
    await admitted(engine, callOf(roomy));
    const result = await refused(engine, callOf(caller));
    expect(result.violations.map(({ scope, metric }) => [scope.level, metric])).toEqual([
      ['key', 'concurrency'],
      ['enterprise', 'cost'],
    ]);
    expect(result.retryAfterMs).toBeNull();
  });

  it('tells the limits of model A from those of model B and of all models', async () => {
    const caller = tenant({
      3: [
        limit({ metric: 'tokens', window: 'month', amount: 30, model: 'a' }),
        limit({ metric: 'tokens', window: 'month', amount: 90 }),
        limit({ metric: 'concurrency', amount: 2, model: 'b' }),
      ],
    });
    await admitted(engine, callOf(caller, { model: 'a' }));
    expect((await refused(engine, callOf(caller, { model: 'a' }))).violations).toMatchObject([
      { model: 'a', limit: 30n },
    ]);
    await admitted(engine, callOf(caller, { model: 'b' }));
    await admitted(engine, callOf(caller, { model: 'b' }));
    const last = await refused(engine, callOf(caller, { model: 'b' }));
    expect(last.violations.map(({ model, metric }) => [model, metric])).toEqual([
      [null, 'tokens'],
      ['b', 'concurrency'],
    ]);
  });

  it('admits past soft and shadow limits and says so', async () => {
    const caller = tenant({
      2: [
        limit({ metric: 'requests', window: 'day', amount: 1, mode: 'soft' }),
        limit({ metric: 'tokens', window: 'minute', amount: 30, mode: 'shadow' }),
      ],
    });
    expect((await admitted(engine, callOf(caller))).warnings).toEqual([]);
    const { warnings, remaining } = await admitted(engine, callOf(caller));
    expect(warnings.map(({ metric, mode }) => [metric, mode])).toEqual([
      ['requests', 'soft'],
      ['tokens', 'shadow'],
    ]);
    expect(remaining).toEqual([]);
  });

  it('blocks everything at 0, and nothing at null', async () => {
    const blocked = tenant({ 3: [limit({ metric: 'cost', window: 'month', amount: 0 })] });
    const refusal = await refused(engine, callOf(blocked, { costNano: 0n }));
    expect(refusal).toMatchObject({ retryAfterMs: null, violations: [{ limit: 0n }] });
    const open = tenant({ 3: [limit({ metric: 'cost', window: 'month', amount: null })] });
    await admitted(engine, callOf(open));
  });

  it('lets a free call pass an exhausted money budget, and refuses the one that costs', async () => {
    const caller = tenant({
      0: [limit({ metric: 'cost', window: 'month', amount: costOf(10, 20) })],
    });
    await admitted(engine, callOf(caller));
    await admitted(engine, callOf(caller, { costNano: 0n }));
    await refused(engine, callOf(caller, { costNano: 1n }));
  });

  it.each([10n ** 14n, 10n ** 15n, 2n ** 53n - 1n, 2n ** 53n + 1n, 9n * 10n ** 18n])(
    'counts an amount of %s exactly',
    async (amount) => {
      const caller = tenant({ 1: [limit({ metric: 'cost', window: 'month', amount })] });
      const { lease } = await admitted(engine, callOf(caller, { costNano: amount - 1n }));
      expect((await usedAndReserved(caller)).reservedCostNano).toBe(amount - 1n);
      await refused(engine, callOf(caller, { costNano: 2n }));
      const { remaining } = await admitted(engine, callOf(caller, { costNano: 1n }));
      expect(remaining[0]?.remaining).toBe(0n);
      const actual = {
        inputTokens: Number.MAX_SAFE_INTEGER,
        outputTokens: 1,
        costNano: amount - 3n,
      };
      await engine.settle(lease, actual, eventOf(caller, lease, actual));
      const month = await usedAndReserved(caller);
      expect(month.costNano).toBe(amount - 3n);
      expect(month.reservedCostNano).toBe(1n);
      expect(month.tokens).toBe(2n ** 53n);
    },
  );

  it('charges a lease admitted twice once, and gives the same lease back', async () => {
    const caller = tenant({ 3: [limit({ metric: 'requests', window: 'month', amount: 2 })] });
    const call = callOf(caller);
    const first = await admitted(engine, call);
    const before = await bed.dump(caller.shard);
    const again = await admitted(await bed.another(), call);
    expect(again.lease).toEqual(first.lease);
    expect(again.remaining).toEqual(first.remaining);
    expect(await bed.dump(caller.shard)).toEqual(before);
  });

  it('settles once, however often it is told, and appends one numbered event', async () => {
    const caller = tenant();
    const { lease } = await admitted(engine, callOf(caller));
    const earlier = await bed.outbox(caller.shard);
    const first = await settle(caller, lease, 3, 4);
    const dump = await bed.dump(caller.shard);
    expect(await settle(caller, lease, 3, 4)).toEqual({ outcome: 'already_settled' });
    expect(await bed.dump(caller.shard)).toEqual(dump);
    const outbox = await bed.outbox(caller.shard);
    expect(outbox).toHaveLength(earlier.length + 1);
    const entry = outbox.at(-1);
    expect(entry).toMatchObject({ id: lease.id, seq: (earlier.at(-1)?.seq ?? 0) + 1 });
    expect(first).toEqual({ outcome: 'settled', seq: entry?.seq, epoch: entry?.epoch });
    await expect(engine.admit(callOf(caller, { leaseId: lease.id }))).rejects.toMatchObject({
      code: 'conflict',
    });
  });

  it('frees all and charges nothing when a call is voided, once', async () => {
    const caller = tenant({
      3: [
        limit({ metric: 'requests', window: 'minute', amount: 1 }),
        limit({ metric: 'tokens', window: 'minute', amount: 30 }),
        limit({ metric: 'cost', window: 'month', amount: costOf(10, 20) }),
        limit({ metric: 'concurrency', amount: 1 }),
      ],
    });
    const { lease } = await admitted(engine, callOf(caller));
    await engine.void(lease);
    await engine.void(lease);
    expect(await settle(caller, lease, 1, 1)).toEqual({ outcome: 'void' });
    for (const scope of await peek(engine, caller)) {
      expect(scope.inFlight).toBe(0);
      expect(scope.month).toMatchObject({
        requests: 0n,
        tokens: 0n,
        costNano: 0n,
        reservedTokens: 0n,
      });
    }
    await admitted(engine, callOf(caller));
  });

  it('a void that comes first stops the admit that comes late', async () => {
    const caller = tenant();
    const call = callOf(caller);
    await engine.void({ id: call.leaseId, shard: caller.shard, enterpriseId: caller.enterpriseId });
    await expect(engine.admit(call)).rejects.toMatchObject({ code: 'conflict' });
    expect((await peek(engine, caller)).map(({ inFlight }) => inFlight)).toEqual([0, 0, 0, 0]);
  });

  const waits: readonly { metric: Metric; window: Window; amount: number; shape: CallShape }[] = [
    { metric: 'requests', window: 'second', amount: 3, shape: {} },
    { metric: 'requests', window: 'minute', amount: 7, shape: {} },
    { metric: 'requests', window: 'hour', amount: 50, shape: {} },
    { metric: 'tokens', window: 'minute', amount: 100, shape: { input: 10, output: 37 } },
    { metric: 'output_tokens', window: 'hour', amount: 90, shape: { output: 40 } },
    { metric: 'requests', window: 'day', amount: 2, shape: {} },
    { metric: 'cost', window: 'week', amount: 500_000_000, shape: {} },
    { metric: 'tokens', window: 'month', amount: 70, shape: {} },
  ];
  it.each(waits)(
    'admits after waiting exactly the retry-after of $metric per $window, and not a millisecond earlier',
    async ({ metric, window, amount, shape }) => {
      const caller = tenant({ 2: [limit({ metric, window, amount })] });
      for (let round = 0; round < 12; round += 1) {
        const result = await engine.admit(callOf(caller, shape));
        if (result.outcome === 'admitted') {
          await bed.setNow(bed.now() + 137);
          continue;
        }
        if (result.outcome !== 'refused' || result.retryAfterMs === null)
          throw new Error('no wait');
        expect(result.retryAfterMs).toBeGreaterThan(0);
        await bed.setNow(bed.now() + result.retryAfterMs - 1);
        await refused(engine, callOf(caller, shape));
        await bed.setNow(bed.now() + 1);
        await admitted(engine, callOf(caller, shape));
      }
      await bed.setNow(noon);
    },
  );

  it('opens a new request window with a third and has warmed to all of it after one window', async () => {
    const caller = tenant({ 3: [limit({ metric: 'requests', window: 'minute', amount: 60 })] });
    const burst = async (): Promise<number> => {
      let count = 0;
      while ((await engine.admit(callOf(caller))).outcome === 'admitted') count += 1;
      return count;
    };
    expect(await burst()).toBe(20);
    expect((await refused(engine, callOf(caller))).retryAfterMs).toBe(secondMs);
    await bed.setNow(noon + 10 * secondMs);
    expect(await burst()).toBe(10);
    await bed.setNow(noon + 10 * minuteMs);
    expect(await burst()).toBe(60);
    await bed.setNow(noon);
  });

  it('gives no refill and nothing negative when the clock steps back', async () => {
    const caller = tenant({
      3: [
        limit({ metric: 'requests', window: 'minute', amount: 6 }),
        limit({ metric: 'tokens', window: 'minute', amount: 60 }),
      ],
    });
    const { lease } = await admitted(engine, callOf(caller));
    await admitted(engine, callOf(caller));
    await refused(engine, callOf(caller));
    for (const back of [5 * secondMs, 59 * secondMs, 10 * minuteMs]) {
      await bed.setNow(noon - back);
      await refused(engine, callOf(caller));
    }
    await settle(caller, lease, 0, 0);
    const limits = (await peek(engine, caller))[3]?.limits ?? [];
    for (const { used } of limits) expect(used).toBeGreaterThanOrEqual(0n);
    await bed.setNow(noon);
  });

  it.each([
    { windowsLater: 0, freed: 25n },
    { windowsLater: 0.5, freed: 25n },
    { windowsLater: 3, freed: 0n },
  ])(
    'gives back to the sub-bucket of the reservation $windowsLater windows later, and only what is still in it',
    async ({ windowsLater, freed }) => {
      const caller = tenant({ 3: [limit({ metric: 'tokens', window: 'minute', amount: 1_000 })] });
      const { lease } = await admitted(engine, callOf(caller, { input: 10, output: 20 }));
      await bed.setNow(noon + windowsLater * minuteMs);
      // Another call, so that a refund to the wrong sub-bucket would have something to take from.
      await admitted(engine, callOf(caller, { input: 10, output: 20 }));
      const before = (await peek(engine, caller))[3]?.limits[0]?.used ?? 0n;
      await settle(caller, lease, 5, 0);
      const after = (await peek(engine, caller))[3]?.limits[0]?.used ?? 0n;
      expect(before - after).toBe(freed);
      await bed.setNow(noon + minuteMs + 6 * secondMs);
      if (windowsLater === 0.5) {
        // The first call's sub-bucket has left; the second's is whole.
        expect((await peek(engine, caller))[3]?.limits[0]?.used).toBe(30n);
      }
      await bed.setNow(noon);
    },
  );

  it('counts more in one sub-bucket than 32 bits hold, exactly, and gives it back to where it was', async () => {
    const caller = tenant({
      3: [limit({ metric: 'tokens', window: 'minute', amount: 10n ** 15n })],
    });
    const counted = async () => (await peek(engine, caller))[3]?.limits[0]?.used;
    const many = 6_000_000_001;
    await bed.setNow(noon);
    const { lease } = await admitted(engine, callOf(caller, { input: many, output: 0 }));
    await bed.setNow(noon + 5_000);
    await admitted(engine, callOf(caller, { input: 7, output: 0 }));
    await bed.setNow(noon + 15_000);
    const { remaining } = await admitted(engine, callOf(caller, { input: 5, output: 0 }));
    expect(remaining[0]?.remaining).toBe(10n ** 15n - BigInt(many) - 12n);
    expect(await counted()).toBe(BigInt(many) + 12n);
    await settle(caller, lease, 4_294_967_296, 0);
    expect(await counted()).toBe(4_294_967_308n);
    // 13 sub-buckets later each has left in its turn.
    await bed.setNow(noon + 65_000);
    await admitted(engine, callOf(caller, { input: 1, output: 0 }));
    expect(await counted()).toBe(13n);
    await bed.setNow(noon + 70_000);
    expect(await counted()).toBe(6n);
    await bed.setNow(noon);
  });

  it('charges what goes beyond the reservation to the current sub-bucket', async () => {
    const caller = tenant({ 3: [limit({ metric: 'tokens', window: 'minute', amount: 100 })] });
    const { lease } = await admitted(engine, callOf(caller));
    await bed.setNow(noon + 50 * secondMs);
    await settle(caller, lease, 10, 90);
    await bed.setNow(noon + 70 * secondMs);
    expect((await peek(engine, caller))[3]?.limits[0]?.used).toBe(70n);
    await bed.setNow(noon);
  });

  it('settles a call in the month of its reservation, although the month has turned', async () => {
    const end = Date.UTC(2026, 10, 30, 16); // midnight of December 1st in Shanghai
    await bed.setNow(end - 1);
    const caller = tenant({ 0: [limit({ metric: 'tokens', window: 'month', amount: 100 })] });
    const { lease } = await admitted(engine, callOf(caller, { output: 90 }));
    expect(lease.periodId).toBe('2026-11');
    await refused(engine, callOf(caller));
    await bed.setNow(end);
    const next = await admitted(engine, callOf(caller));
    expect(next.lease.periodId).toBe('2026-12');
    await settle(caller, lease, 10, 40);
    expect(await usedAndReserved(caller)).toMatchObject({ periodId: '2026-12', tokens: 0n });
    await bed.setNow(end - 1);
    expect(await usedAndReserved(caller)).toMatchObject({
      periodId: '2026-11',
      tokens: 50n,
      reservedTokens: 0n,
    });
    // Two months later the first call of the month clears the fields of before the previous one.
    await bed.setNow(Date.UTC(2027, 0, 5));
    await admitted(engine, callOf(caller));
    const fields = await bed.redis.client.hkeys(
      bed.redis.keys(caller.shard).scope(caller.enterpriseId),
    );
    expect(fields.sort()).toEqual(['2026-12', '2027-01', 'c']);
    await bed.setNow(noon);
  });

  it.each([1, 3])(
    'settles a call of day N in day N+%i: only day N is corrected, and nothing is negative',
    async (daysLater) => {
      const dayMs = 24 * 60 * minuteMs;
      const caller = tenant({
        0: [limit({ metric: 'tokens', window: 'day', amount: 100 })],
        2: [limit({ metric: 'cost', window: 'day', amount: costOf(10, 90) })],
      });
      const used = async () =>
        (await peek(engine, caller)).flatMap(({ limits }) => limits.map((each) => each.used));
      const reserved = async () =>
        (await peek(engine, caller)).flatMap(({ limits }) => limits.map((each) => each.reserved));
      await bed.setNow(noon);
      const { lease } = await admitted(engine, callOf(caller, { input: 10, output: 90 }));
      await bed.setNow(noon + daysLater * dayMs);
      // Another call, so that a correction of the wrong day would have something to take from.
      const next = await admitted(engine, callOf(caller));
      await settle(caller, lease, 1, 2);
      expect(await used()).toEqual([0n, 0n]);
      expect(await reserved()).toEqual([30n, costOf(10, 20)]);
      await settle(caller, next.lease, 10, 20);
      expect(await used()).toEqual([30n, costOf(10, 20)]);
      expect(await reserved()).toEqual([0n, 0n]);
      await bed.setNow(noon);
    },
  );

  it('settles a call of a month whose record has been cleared: the running month is untouched', async () => {
    const caller = tenant({ 1: [limit({ metric: 'tokens', window: 'month', amount: 100 })] });
    const { lease } = await admitted(engine, callOf(caller, { output: 90 }));
    await bed.setNow(Date.UTC(2027, 1, 10));
    const next = await admitted(engine, callOf(caller));
    expect((await settle(caller, lease, 1, 2)).outcome).toBe('settled');
    expect(await usedAndReserved(caller)).toMatchObject({
      periodId: '2027-02',
      tokens: 0n,
      reservedTokens: 30n,
    });
    await settle(caller, next.lease, 10, 20);
    expect(await usedAndReserved(caller)).toMatchObject({ tokens: 30n, reservedTokens: 0n });
    for (const { month } of await peek(engine, caller)) expect(month.costNano).toBe(costOf(10, 20));
    await bed.setNow(noon);
  });

  it('turns a day to the second in the enterprise’s zone, without any job', async () => {
    const midnight = Date.UTC(2026, 10, 15, 16);
    await bed.setNow(midnight - 1_000);
    const caller = tenant({ 3: [limit({ metric: 'requests', window: 'day', amount: 1 })] });
    await admitted(engine, callOf(caller));
    expect((await refused(engine, callOf(caller))).violations[0]).toMatchObject({
      resetsAtMs: midnight,
      retryAfterMs: 1_000,
    });
    await bed.setNow(midnight);
    await admitted(engine, callOf(caller));
    await bed.setNow(noon);
  });

  it('clamps when a limit is lowered in flight and uses a raised one at once', async () => {
    const caller = tenant({ 3: [limit({ metric: 'tokens', window: 'month', amount: 100 })] });
    const withAmount = (amount: number): Tenant => ({
      ...caller,
      path: caller.path.map((scope, index) =>
        index === 3
          ? { ...scope, limits: [limit({ metric: 'tokens', window: 'month', amount })] }
          : scope,
      ),
    });
    await admitted(engine, callOf(caller, { output: 70 }));
    const lowered = await refused(engine, callOf(withAmount(50)));
    expect(lowered.violations[0]).toMatchObject({ limit: 50n, used: 0n, reserved: 80n });
    const raised = await admitted(engine, callOf(withAmount(1_000)));
    expect(raised.remaining[0]?.remaining).toBe(890n);
    const soft = await admitted(engine, callOf(withAmount(5_000), { output: 0 }));
    expect(soft.remaining[0]?.remaining).toBeGreaterThan(0n);
  });

  it('counts this month for a limit that is added in the middle of it', async () => {
    const caller = tenant();
    const { lease } = await admitted(engine, callOf(caller));
    await settle(caller, lease, 10, 20);
    const limited = {
      ...caller,
      path: caller.path.map((scope) => ({
        ...scope,
        limits: [limit({ metric: 'cost', window: 'month', amount: costOf(10, 20) })],
      })),
    };
    const { violations } = await refused(engine, callOf(limited));
    expect(violations).toHaveLength(4);
    expect(violations[0]).toMatchObject({ used: costOf(10, 20) });
  });

  it('refuses reservations that are negative or not whole', async () => {
    const caller = tenant();
    for (const shape of [
      { input: -1 },
      { output: 1.5 },
      { output: Number.NaN },
      { costNano: -1n },
    ]) {
      await expect(
        engine.admit({
          ...callOf(caller),
          reserve: {
            windowInputTokens: 0,
            windowOutputTokens: 0,
            budgetInputTokens: shape.input ?? 0,
            budgetOutputTokens: shape.output ?? 0,
            costNano: shape.costNano ?? 0n,
          },
        }),
      ).rejects.toThrow(RangeError);
    }
  });

  it('answers stale where the policy is of another version, and reserves nothing', async () => {
    const caller = tenant();
    const before = await bed.dump(caller.shard);
    expect(await engine.admit(callOf(caller, { policyVersion: 7 }))).toEqual({
      outcome: 'stale',
      currentVersion: 0,
    });
    expect(await bed.dump(caller.shard)).toEqual(before);
  });

  it('keeps ids with braces and colons out of the key’s slot', async () => {
    const strange = tenant();
    const caller = {
      ...strange,
      path: strange.path.map((scope, index) =>
        index === 3 ? { ...scope, id: `{s00}:x ${newId()}` } : scope,
      ),
    };
    const { lease } = await admitted(engine, callOf(caller));
    await settle(caller, lease, 1, 2);
    expect((await usedAndReserved(caller)).tokens).toBe(3n);
  });
});

function leasesOf(results: readonly AdmitResult[]): Lease[] {
  return results.flatMap((result) => (result.outcome === 'admitted' ? [result.lease] : []));
}
