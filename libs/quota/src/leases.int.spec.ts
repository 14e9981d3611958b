import { newId } from '@weir/domain';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LeaseReaper } from './lease-reaper.js';
import type { Lease, QuotaEngine } from './quota-engine.js';
import {
  actualOf,
  admitted,
  callOf,
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

describe.each(servers)('leases on $name', ({ variable, cluster }) => {
  let bed: Testbed;
  let engine: QuotaEngine;
  let reaper: LeaseReaper;

  beforeAll(async () => {
    bed = await createTestbed({ url: requiredUrl(variable, process.env[variable]), cluster });
    engine = bed.engine;
    reaper = new LeaseReaper(bed.redis, { batch: 100 });
  });
  afterAll(() => bed.close());

  const settle = async (caller: Tenant, lease: Lease, input: number, output: number) => {
    const actual = actualOf(input, output);
    return engine.settle(lease, actual, eventOf(caller, lease, actual));
  };
  const reapAll = async (): Promise<number> => {
    let total = 0;
    for (let shard = 0; shard < bed.redis.shardCount; shard += 1) {
      for (let reaped = await reaper.reap(shard); reaped > 0; reaped = await reaper.reap(shard)) {
        total += reaped;
      }
    }
    return total;
  };
  const eventsOf = async (caller: Tenant, id: string) =>
    (await bed.outbox(caller.shard)).filter(
      (entry) => entry.id === id || entry.event.data.adjusts === id,
    );

  it('extends a stream chunk by chunk until a hard budget refuses, and leaves it running', async () => {
    const caller = tenant({
      1: [limit({ metric: 'tokens', window: 'month', amount: 100 })],
      3: [limit({ metric: 'tokens', window: 'minute', amount: 40 })],
    });
    const { lease } = await admitted(engine, callOf(caller, { input: 10, output: 20 }));
    const observed = { inputTokens: 10, outputTokens: 18, costNano: costOf(10, 18) };
    const chunk = { outputTokens: 30, costNano: costOf(0, 30), observed };
    expect((await engine.extend(lease, chunk)).outcome).toBe('granted');
    expect((await engine.extend(lease, chunk)).outcome).toBe('granted');
    const refusal = await engine.extend(lease, chunk);
    expect(refusal).toMatchObject({
      outcome: 'refused',
      violations: [{ scope: { level: 'department' }, limit: 100n, reserved: 90n, requested: 30n }],
    });
    // The rate was charged all the same, beyond its amount.
    const usage = await peek(engine, caller);
    expect(usage[3]?.limits[0]?.used).toBe(90n);
    expect(usage[1]?.month.reservedTokens).toBe(90n);
    await settle(caller, lease, 10, 55);
    const after = await peek(engine, caller);
    expect(after[1]?.month).toMatchObject({
      tokens: 65n,
      reservedTokens: 0n,
      reservedCostNano: 0n,
    });
    expect(after[3]?.limits[0]?.used).toBe(65n);
    expect(await engine.extend(lease, chunk)).toMatchObject({ outcome: 'gone' });
  });

  it('gives the unused part of an extension back to the sub-bucket that it was charged to', async () => {
    const caller = tenant({ 3: [limit({ metric: 'tokens', window: 'minute', amount: 1_000 })] });
    const { lease } = await admitted(engine, callOf(caller, { input: 0, output: 20 }));
    await bed.setNow(noon + 30_000);
    const observed = { inputTokens: 0, outputTokens: 20, costNano: 0n };
    await engine.extend(lease, { outputTokens: 50, costNano: 0n, observed });
    await bed.setNow(noon + 40_000);
    await settle(caller, lease, 0, 30);
    await bed.setNow(noon + 70_000);
    // The reservation's 20 have left the window; of the extension's 50, 40 came back.
    expect((await peek(engine, caller))[3]?.limits[0]?.used).toBe(10n);
    await bed.setNow(noon);
  });

  it('stays in the month of its reservation when it is asked for again after the month has turned', async () => {
    const end = Date.UTC(2026, 10, 30, 16);
    await bed.setNow(end - 1);
    const caller = tenant({ 3: [limit({ metric: 'tokens', window: 'month', amount: 100 })] });
    const call = callOf(caller);
    await admitted(engine, call);
    await bed.setNow(end);
    const { lease, remaining } = await admitted(engine, call);
    expect(lease.periodId).toBe('2026-11');
    expect(remaining[0]?.remaining).toBe(100n);
    const observed = { inputTokens: 0, outputTokens: 0, costNano: 0n };
    await engine.extend(lease, { outputTokens: 30, costNano: 0n, observed });
    expect((await peek(engine, caller))[3]?.month.reservedTokens).toBe(0n);
    await bed.setNow(end - 1);
    expect((await peek(engine, caller))[3]?.month.reservedTokens).toBe(60n);
    await engine.void(lease);
    await bed.setNow(noon);
  });

  it('can only be extended where the call was admitted, and says so', async () => {
    const caller = tenant();
    const { lease } = await admitted(engine, callOf(caller));
    const observed = { inputTokens: 0, outputTokens: 0, costNano: 0n };
    const other = await bed.another();
    await expect(
      other.extend(lease, { outputTokens: 1, costNano: 0n, observed }),
    ).rejects.toMatchObject({ code: 'conflict' });
    await expect(
      engine.extend({ ...lease }, { outputTokens: 1, costNano: 0n, observed }),
    ).rejects.toMatchObject({ code: 'conflict' });
    await engine.void(lease);
  });

  it('keeps the slot of a 30-minute stream with a 60 s lease, by heartbeats in batches', async () => {
    const caller = tenant({ 3: [limit({ metric: 'concurrency', amount: 2 })] });
    const long = (await admitted(engine, callOf(caller))).lease;
    const dead = (await admitted(engine, callOf(caller))).lease;
    for (let second = 20; second <= 1_800; second += 20) {
      await bed.setNow(noon + second * 1_000);
      const alive = await engine.renew([
        {
          lease: long,
          leaseMs: 60_000,
          observed: { inputTokens: 10, outputTokens: second, costNano: 0n },
        },
      ]);
      expect([...alive]).toEqual([long.id]);
      await reapAll();
    }
    expect(await engine.renew([{ lease: dead, leaseMs: 60_000, observed: null }])).toEqual(
      new Set(),
    );
    expect((await peek(engine, caller))[3]?.inFlight).toBe(1);
    expect((await settle(caller, long, 10, 1_800)).outcome).toBe('settled');
    expect((await peek(engine, caller))[3]?.inFlight).toBe(0);
    await bed.setNow(noon);
  });

  it('frees the slots of a hung upstream after the lease time, charges what was observed, once, with two reapers', async () => {
    const caller = tenant({ 3: [limit({ metric: 'concurrency', amount: 10 })] });
    const leases: Lease[] = [];
    for (let index = 0; index < 10; index += 1) {
      leases.push((await admitted(engine, callOf(caller, { input: 10, output: 50 }))).lease);
    }
    const [first] = leases;
    if (!first) throw new Error('no lease');
    await engine.renew([
      {
        lease: first,
        leaseMs: 60_000,
        observed: { inputTokens: 10, outputTokens: 7, costNano: costOf(10, 7) },
      },
    ]);
    await refused(engine, callOf(caller));
    await bed.setNow(noon + 60_001);
    const second = new LeaseReaper(bed.redis, { batch: 100 });
    const reaped = await Promise.all([reaper.reap(caller.shard), second.reap(caller.shard)]);
    expect(reaped[0] + reaped[1]).toBe(10);
    const usage = (await peek(engine, caller))[3];
    expect(usage?.inFlight).toBe(0);
    // Nine with their prompt alone, one with what it had streamed.
    expect(usage?.month).toMatchObject({ requests: 10n, tokens: 107n, reservedTokens: 0n });
    expect(usage?.month.costNano).toBe(costOf(10, 0) * 10n + costOf(0, 7));
    const [entry, ...more] = await eventsOf(caller, first.id);
    expect(more).toEqual([]);
    expect(entry?.event).toMatchObject({
      id: first.id,
      data: {
        status: 'expired',
        estimated: true,
        usage: { input: 10, output: 7 },
        costNano: costOf(10, 7).toString(),
        periodId: '2026-11',
      },
    });
    await admitted(engine, callOf(caller));
    await bed.setNow(noon);
  });

  it('does not reap a lease that was renewed after it was found to have run out', async () => {
    const caller = tenant();
    const { lease } = await admitted(engine, callOf(caller));
    const keys = bed.redis.keys(caller.shard);
    // What a reaper sends that had listed the lease before the heartbeat came.
    const { reply } = await bed.redis.runFenced(
      'settle',
      caller.shard,
      [keys.lease(lease.id), keys.leases, keys.seq, keys.outbox],
      [keys.scopePrefix, Buffer.alloc(48), '', lease.id, '1000', '1'],
    );
    expect(String(reply)).toBe('N');
    expect((await settle(caller, lease, 1, 1)).outcome).toBe('settled');
  });

  it('corrects the money, once, by an adjustment when a settlement comes after the expiry', async () => {
    const caller = tenant();
    const { lease } = await admitted(engine, callOf(caller, { input: 10, output: 50 }));
    await bed.setNow(noon + 60_001);
    await reapAll();
    const next = await admitted(engine, callOf(caller));
    const late = await settle(caller, lease, 10, 30);
    expect(late.outcome).toBe('late');
    expect((await settle(caller, lease, 10, 30)).outcome).toBe('already_settled');
    await engine.void(next.lease);
    const usage = (await peek(engine, caller))[3];
    expect(usage?.inFlight).toBe(0);
    expect(usage?.month).toMatchObject({ requests: 1n, costNano: costOf(10, 30), tokens: 10n });
    const events = await eventsOf(caller, lease.id);
    expect(events.map(({ event }) => event.data.kind)).toEqual(['usage', 'adjustment']);
    expect(events[1]?.event.data).toMatchObject({
      adjusts: lease.id,
      late: true,
      costNano: costOf(0, 30).toString(),
      costPico: (costOf(0, 30) * 1_000n).toString(),
    });
    expect(sumOf(events.map(({ event }) => event.data.costNano))).toBe(costOf(10, 30));
    await bed.setNow(noon);
  });

  it('adjusts downward when the reaper had charged more than was used', async () => {
    const caller = tenant();
    const { lease } = await admitted(engine, callOf(caller, { input: 100, output: 50 }));
    await bed.setNow(noon + 60_001);
    await reapAll();
    await settle(caller, lease, 40, 0);
    const month = (await peek(engine, caller))[0]?.month;
    expect(month?.costNano).toBe(costOf(40, 0));
    const events = await eventsOf(caller, lease.id);
    expect(sumOf(events.map(({ event }) => event.data.costNano))).toBe(costOf(40, 0));
    await bed.setNow(noon);
  });

  it('settles a call that ran over its lease but was not reaped yet as usual', async () => {
    const caller = tenant();
    const { lease } = await admitted(engine, callOf(caller));
    await bed.setNow(noon + 3_600_000);
    expect((await settle(caller, lease, 1, 1)).outcome).toBe('settled');
    await reapAll();
    expect(await eventsOf(caller, lease.id)).toHaveLength(1);
    await bed.setNow(noon);
  });

  it('leaves nothing reserved after 1,000 calls that end, are voided or are left alone at random', async () => {
    const caller = tenant(
      {
        0: [limit({ metric: 'cost', window: 'total', amount: 10n ** 15n })],
        3: [limit({ metric: 'concurrency', amount: 2_000 })],
      },
      { depth: 6 },
    );
    const spent = await Promise.all(
      Array.from({ length: 1_000 }, async (_, index) => {
        const { lease } = await admitted(engine, callOf(caller));
        if (index % 3 === 0) {
          await settle(caller, lease, index, index + 1);
          return costOf(index, index + 1);
        }
        if (index % 3 === 1) {
          await engine.void(lease);
          return 0n;
        }
        return costOf(10, 0);
      }),
    );
    await bed.setNow(noon + 60_001);
    await reapAll();
    const expected = spent.reduce((sum, cost) => sum + cost, 0n);
    for (const scope of await peek(engine, caller)) {
      expect(scope.inFlight).toBe(0);
      expect(scope.month).toMatchObject({ reservedTokens: 0n, reservedCostNano: 0n });
      expect(scope.month.costNano).toBe(expected);
    }
    expect(await bed.redis.client.zcard(bed.redis.keys(caller.shard).leases)).toBe(0);
    await bed.setNow(noon);
  });

  it('numbers the events of a shard without a hole', async () => {
    for (let shard = 0; shard < bed.redis.shardCount; shard += 1) {
      const entries = await bed.outbox(shard);
      expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index + 1));
    }
  });

  it('takes a lease off the list whose record is gone, so that it does not stand in the way', async () => {
    const { leases } = bed.redis.keys(0);
    await bed.redis.client.zadd(leases, 1, newId());
    expect(await reaper.reap(0)).toBe(0);
    expect(await bed.redis.client.zcard(leases)).toBe(0);
  });
});

function sumOf(amounts: readonly string[]): bigint {
  return amounts.reduce((sum, amount) => sum + BigInt(amount), 0n);
}
