import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { EpochKeeper, type EpochKeeperOptions } from './epoch-keeper.js';
import { LeaseReaper } from './lease-reaper.js';
import type { CounterSeed, Lease, QuotaEngine } from './quota-engine.js';
import { connectQuotaRedis, type QuotaRedis } from './quota-redis.js';
import { createRedisEngine } from './redis-engine.js';
import { type OwnRedis, startOwnRedis } from './testbed/own-redis.js';
import {
  actualOf,
  admitted,
  callOf,
  costOf,
  eventOf,
  limit,
  type OutboxEntry,
  peek,
  refused,
  type Tenant,
  tenant,
} from './testbed/quota-testbed.js';

describe('epochs', () => {
  let server: OwnRedis;
  let redis: QuotaRedis;
  let engine: QuotaEngine;
  const connections: QuotaRedis[] = [];

  const connect = async (shardCount = 1): Promise<QuotaRedis> => {
    const connection = connectQuotaRedis({
      url: server.url,
      prefix: 'e',
      shardCount,
      commandTimeoutMs: 5_000,
    });
    connections.push(connection);
    await connection.ready();
    return connection;
  };
  const keeper = (options: Partial<EpochKeeperOptions> = {}, on = redis): EpochKeeper =>
    new EpochKeeper(on, {
      loadLedgerState: async () => null,
      loadSeeds: async () => [],
      republish: async () => undefined,
      ...options,
    });
  const outbox = async (): Promise<OutboxEntry[]> => {
    const entries = await redis.client.xrange(redis.keys(0).outbox, '-', '+');
    return entries.map(([, [, id = '', , seq = '', , epoch = '', , event = '']]) => ({
      id,
      seq: Number(seq),
      epoch,
      event: JSON.parse(event) as OutboxEntry['event'],
    }));
  };
  const settle = (caller: Tenant, lease: Lease, input: number, output: number) => {
    const actual = actualOf(input, output);
    return engine.settle(lease, actual, eventOf(caller, lease, actual));
  };
  const inOneShard = (limits: Parameters<typeof tenant>[0] = {}): Tenant => ({
    ...tenant(limits),
    shard: 0,
  });

  beforeEach(async () => {
    server = await startOwnRedis();
    redis = await connect();
    engine = createRedisEngine(redis);
  });
  afterEach(async () => {
    await Promise.all(connections.splice(0).map((connection) => connection.close()));
    await server.close();
  });

  it('refuses every operation until an epoch is declared', async () => {
    const caller = inOneShard();
    await expect(engine.admit(callOf(caller))).rejects.toMatchObject({ code: 'quota_unavailable' });
    await expect(peek(engine, caller)).rejects.toMatchObject({ code: 'quota_unavailable' });
    await keeper().ensure(0);
    await admitted(engine, callOf(caller));
  });

  it('is declared once by several workers at a time, after one seeding', async () => {
    const loadSeeds = vi.fn(async () => []);
    const results = await Promise.all(
      [redis, await connect(), await connect()].map((on) => keeper({ loadSeeds }, on).ensure(0)),
    );
    expect(new Set(results.map(({ epoch }) => epoch)).size).toBe(1);
    expect(results.filter(({ created }) => created)).toHaveLength(1);
    expect(loadSeeds).toHaveBeenCalledTimes(1);
  });

  it('takes records of another layout for lost: they are rebuilt and never misread', async () => {
    const caller = inOneShard();
    await keeper().ensure(0);
    const { lease } = await admitted(engine, callOf(caller));
    const { epoch, leases } = redis.keys(0);
    expect(epoch).toMatch(/:epoch:\d+$/);
    // What a version with other records left: its epoch under its own number, its data under the same names.
    await redis.client.rename(epoch, epoch.replace(/\d+$/, '0'));
    await redis.client.set(redis.keys(0).lease(lease.id), 'Rubbish');
    expect((await keeper().ensure(0)).created).toBe(true);
    expect(await redis.client.exists(leases, redis.keys(0).lease(lease.id))).toBe(0);
    expect((await peek(engine, caller))[3]).toMatchObject({ inFlight: 0 });
    expect((await admitted(engine, callOf(caller))).degraded).toBe(false);
  });

  it('refuses another shard count than the one the installation was made with', async () => {
    await keeper().ensure(0);
    const other = await connect(4);
    await expect(keeper({}, other).ensureAll()).rejects.toThrow('made with 1 shards');
    await expect(createRedisEngine(other).admit(callOf(inOneShard()))).rejects.toMatchObject({
      details: { reason: 'shard_count' },
    });
  });

  it('seeds lost counters from the roll-ups, so that what was used still counts', async () => {
    const caller = inOneShard({
      0: [limit({ metric: 'cost', window: 'month', amount: costOf(10, 20) * 10n })],
      3: [limit({ metric: 'tokens', window: 'total', amount: 400, model: 'm' })],
    });
    await keeper().ensure(0);
    const { lease } = await admitted(engine, callOf(caller));
    await redis.client.flushall();
    await expect(engine.admit(callOf(caller))).rejects.toMatchObject({ code: 'quota_unavailable' });
    const base = { requests: 9n, inputTokens: 90n, outputTokens: 180n, costNano: costOf(90, 180) };
    const seeds: CounterSeed[] = [
      ...caller.path.map(({ id }) => ({
        ...base,
        scopeId: id,
        window: 'month' as const,
        periodId: lease.periodId,
        model: null,
      })),
      {
        ...base,
        scopeId: caller.path[3]?.id ?? '',
        window: 'total',
        periodId: 'total',
        model: 'm',
      },
    ];
    const republish = vi.fn(async () => undefined);
    await keeper({ loadSeeds: async () => seeds, republish }).ensure(0);
    expect(republish).toHaveBeenCalledWith(0);
    const { remaining } = await admitted(engine, callOf(caller));
    expect(remaining.map((each) => each.remaining)).toEqual([0n, 400n - 270n - 30n]);
    await refused(engine, callOf(caller));
  });

  it('books a call whose lease was lost with the data, exactly once', async () => {
    const caller = inOneShard({ 3: [limit({ metric: 'tokens', window: 'day', amount: 1_000 })] });
    await keeper().ensure(0);
    const { lease } = await admitted(engine, callOf(caller));
    await redis.client.flushall();
    await keeper().ensure(0);
    expect((await settle(caller, lease, 10, 7)).outcome).toBe('settled');
    expect((await settle(caller, lease, 10, 7)).outcome).toBe('already_settled');
    const usage = (await peek(engine, caller))[3];
    expect(usage?.month).toMatchObject({ requests: 1n, tokens: 17n, reservedTokens: 0n });
    expect(usage?.limits[0]?.used).toBe(17n);
    expect(usage?.inFlight).toBe(0);
    expect((await outbox()).map(({ id }) => id)).toEqual([lease.id]);
  });

  it('detects an old snapshot: its numbers are behind what the ledger has seen', async () => {
    const { epoch } = await keeper().ensure(0);
    const caller = inOneShard();
    const { lease } = await admitted(engine, callOf(caller));
    await settle(caller, lease, 1, 1);
    const same = await keeper({ loadLedgerState: async () => ({ epoch, seq: 1 }) }).ensure(0);
    expect(same).toEqual({ epoch, created: false });
    const ahead = await keeper({ loadLedgerState: async () => ({ epoch, seq: 2 }) }).ensure(0);
    expect(ahead.created).toBe(true);
    expect(ahead.epoch > epoch).toBe(true);
    expect((await peek(engine, caller))[0]?.month.requests).toBe(0n);
    const newer = `f${epoch.slice(1)}`;
    const older = await keeper({ loadLedgerState: async () => ({ epoch: newer, seq: 1 }) }).ensure(
      0,
    );
    expect(older.created).toBe(true);
  });

  it('trusts a restarted Redis only after a new epoch, and keeps its counters and leases', async () => {
    const caller = inOneShard({ 3: [limit({ metric: 'concurrency', amount: 1 })] });
    await keeper().ensure(0);
    const { lease } = await admitted(engine, callOf(caller));
    // Written through, so that the kill loses nothing here.
    await redis.client.config('SET', 'appendfsync', 'always');
    await redis.client.set('x', '1');
    await server.kill();
    await server.restart();
    await vi.waitFor(() => redis.client.ping(), { timeout: 5_000 });
    await expect(engine.admit(callOf(caller))).rejects.toMatchObject({
      details: { reason: 'epoch' },
    });
    const loadSeeds = vi.fn(async () => []);
    expect((await keeper({ loadSeeds }).ensure(0)).created).toBe(true);
    expect(loadSeeds).not.toHaveBeenCalled();
    await refused(engine, callOf(caller));
    expect((await settle(caller, lease, 1, 1)).outcome).toBe('settled');
    await admitted(engine, callOf(caller));
  });

  it('gives the shard up when a rebuild fails, so that the next try begins at once', async () => {
    const failing = keeper({ loadSeeds: () => Promise.reject(new Error('the books are away')) });
    await expect(failing.ensure(0)).rejects.toThrow('the books are away');
    expect(await redis.client.exists(redis.keys(0).epochLock)).toBe(0);
    expect((await keeper().ensure(0)).created).toBe(true);
  });

  it('does not let one shard that cannot be rebuilt keep the others closed', async () => {
    const two = await connect(2);
    const republish = (shard: number): Promise<void> =>
      shard === 0 ? Promise.reject(new Error('not this one')) : Promise.resolve();
    await expect(keeper({ republish }, two).ensureAll()).rejects.toThrow('not this one');
    expect((await two.fence(0)).epoch).toBe('');
    expect((await two.fence(1)).epoch).not.toBe('');
  });

  it('keeps its hands off a shard that another has taken over meanwhile', async () => {
    const { epochLock } = redis.keys(0);
    const caller = inOneShard();
    const declared: string[] = [];
    const paused = keeper({
      loadSeeds: async () => {
        // As if this process had been stopped for longer than the lock lasts.
        await redis.client.del(epochLock);
        declared.push((await keeper().ensure(0)).epoch);
        await admitted(engine, callOf(caller));
        return [];
      },
    });
    expect(await paused.ensure(0)).toEqual({ epoch: declared[0], created: false });
    expect((await peek(engine, caller))[0]?.inFlight).toBe(1);
  });

  it('corrects a call whose settlement was lost and that was reaped before it could be sent again', async () => {
    const caller = inOneShard();
    await keeper().ensure(0);
    const { lease } = await admitted(engine, callOf(caller, { leaseMs: 1 }));
    const keys = redis.keys(0);
    const scopes = caller.path.map(({ id }) => keys.scope(id));
    const names = [keys.lease(lease.id), keys.leases, keys.seq, keys.outbox, ...scopes];
    const before = await Promise.all(names.map((name) => redis.client.dumpBuffer(name)));
    expect((await settle(caller, lease, 10, 9)).outcome).toBe('settled');
    // Redis comes back as it was before the settlement, in another process.
    for (const [index, name] of names.entries()) {
      const value = before[index];
      if (value) await redis.client.restore(name, 0, value, 'REPLACE');
      else await redis.client.del(name);
    }
    await redis.client.hset(keys.meta, 'run_id', 'another process');
    await keeper().ensure(0);
    const worker = await connect();
    await vi.waitFor(async () => {
      expect(await new LeaseReaper(worker, { batch: 10 }).reap(0)).toBe(1);
    });
    expect((await peek(engine, caller))[0]?.month.requests).toBe(1n);
    await vi.waitFor(async () => {
      expect((await peek(engine, caller))[0]?.month.costNano).toBe(costOf(10, 9));
    });
    const events = (await outbox()).filter(
      ({ id, event }) => id === lease.id || event.data.adjusts === lease.id,
    );
    expect(events.map(({ event }) => event.data.kind)).toEqual(['usage', 'adjustment']);
    const booked = events.reduce((sum, { event }) => sum + BigInt(event.data.costNano), 0n);
    expect(booked).toBe(costOf(10, 9));
  });

  it.each([
    { lost: 'nothing', emptied: false, lostBytes: 0 },
    { lost: 'the end of its file', emptied: false, lostBytes: 1_000_000 },
    { lost: 'everything', emptied: true, lostBytes: 0 },
  ])('loses no settled call when Redis is killed under load and loses $lost', async (loss) => {
    const caller = inOneShard({
      0: [limit({ metric: 'cost', window: 'total', amount: 10n ** 18n })],
    });
    await keeper().ensure(0);
    const confirmed = new Map<string, Lease>();
    let stop = false;
    const callers = Array.from({ length: 16 }, async () => {
      while (!stop) {
        try {
          const { lease } = await admitted(engine, callOf(caller));
          const result = await settle(caller, lease, 10, 5);
          if (result.outcome === 'settled') confirmed.set(lease.id, lease);
        } catch {
          // Redis is being killed: what was not confirmed is not counted here.
          return;
        }
      }
    });
    await vi.waitFor(() => expect(confirmed.size).toBeGreaterThan(1_500), { timeout: 15_000 });
    await server.kill();
    stop = true;
    await Promise.all(callers);
    await server.restart(loss);
    await vi.waitFor(() => redis.client.ping(), { timeout: 5_000 });
    await keeper().ensure(0);
    await vi.waitFor(
      async () => {
        const ids = new Set((await outbox()).map(({ id }) => id));
        expect([...confirmed.keys()].filter((id) => !ids.has(id))).toEqual([]);
      },
      { timeout: 15_000, interval: 100 },
    );
    // Counters hold every booked call once, though the replay may have sent it twice.
    const ids = new Set((await outbox()).map(({ id }) => id));
    const usage = (await peek(engine, caller))[0];
    expect(usage?.month.requests).toBe(BigInt(ids.size));
    expect(usage?.limits[0]?.used).toBe(BigInt(ids.size) * costOf(10, 5));
  });
});
