import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type DegradedMode, newId } from '@weir/domain';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { EpochKeeper } from './epoch-keeper.js';
import { EventSpool } from './event-spool.js';
import { LeaseReaper } from './lease-reaper.js';
import { LocalAdmissions } from './local-admissions.js';
import type { Lease, QuotaEngine } from './quota-engine.js';
import { connectQuotaRedis, type QuotaRedis } from './quota-redis.js';
import { createRedisEngine, type RedisEngine } from './redis-engine.js';
import { createResilientEngine, type ResilientEngine } from './resilient-engine.js';
import { type OwnRedis, startOwnRedis } from './testbed/own-redis.js';
import {
  actualOf,
  admitted,
  callOf,
  costOf,
  eventOf,
  limit,
  peek,
  refused,
  type Tenant,
  tenant,
} from './testbed/quota-testbed.js';

/** What deciding by itself may take beside the timeout of one command. */
const slackMs = 20;

/** How much later than asked a timer comes on this machine now: other suites and builds run beside this one. */
async function latenessOf(ms: number): Promise<number> {
  const began = performance.now();
  await delay(ms);
  return Math.max(0, performance.now() - began - ms);
}

describe('the engine with Redis away', () => {
  let server: OwnRedis;
  let redis: QuotaRedis;
  let direct: RedisEngine;
  let engine: ResilientEngine;
  let spool: EventSpool;
  let admissions: LocalAdmissions;
  let directory: string;
  let mode: DegradedMode;
  let gateways: number;
  const connections: QuotaRedis[] = [];

  const connect = (commandTimeoutMs: number): QuotaRedis => {
    const connection = connectQuotaRedis({
      url: server.url,
      prefix: 'r',
      shardCount: 1,
      commandTimeoutMs,
    });
    connections.push(connection);
    return connection;
  };
  const declareEpoch = async (): Promise<void> => {
    const worker = connect(5_000);
    await worker.ready();
    await new EpochKeeper(worker, {
      loadLedgerState: async () => null,
      loadSeeds: async () => [],
      republish: async () => undefined,
    }).ensureAll();
  };
  const resilient = (): ResilientEngine =>
    createResilientEngine({
      redis,
      engine: direct,
      settingsOf: () => ({ degradedMode: mode, degradedBudgetSharePercent: 10 }),
      liveGateways: () => gateways,
      spool,
      admissions,
      probeEveryMs: 50,
    });
  /** What a gateway does when it starts. */
  const openFiles = async (): Promise<void> => {
    spool = await EventSpool.open({ directory });
    admissions = await LocalAdmissions.load(
      await EventSpool.open({ directory: join(directory, 'admissions') }),
    );
  };
  /** The gateway is killed: nothing of it is left but its files. */
  const gatewayDies = async (): Promise<void> => {
    await engine.close();
    await spool.close();
    await admissions.close();
  };
  const redisReturns = async (): Promise<void> => {
    await server.restart();
    await vi.waitFor(() => redis.client.ping(), { timeout: 5_000 });
    await declareEpoch();
  };
  const untilBooked = (): Promise<void> =>
    vi.waitFor(() => expect(engine.exposure().spooled).toBe(0), { timeout: 10_000 });
  const caller = (limits: Parameters<typeof tenant>[0] = {}): Tenant => ({
    ...tenant(limits),
    shard: 0,
  });
  const settle = (by: QuotaEngine, who: Tenant, lease: Lease, input: number, output: number) => {
    const actual = actualOf(input, output);
    return by.settle(lease, actual, eventOf(who, lease, actual));
  };
  const outboxIds = async (): Promise<string[]> => {
    const entries = await redis.client.xrange(redis.keys(0).outbox, '-', '+');
    return entries.map(([, [, id = '']]) => id);
  };
  /** Fails calls until the circuit is open. */
  const openCircuit = async (who: Tenant): Promise<void> => {
    await vi.waitFor(async () => {
      await engine.admit(callOf(who)).catch(() => undefined);
      expect(engine.stateOf(0)).not.toBe('closed');
    });
  };
  const untilShared = (): Promise<void> =>
    vi.waitFor(() => expect(engine.degraded).toBe(false), { timeout: 10_000 });

  beforeEach(async () => {
    server = await startOwnRedis();
    directory = await mkdtemp(join(tmpdir(), 'weir-spool-'));
    mode = 'local';
    gateways = 1;
    redis = connect(50);
    await redis.ready();
    await declareEpoch();
    direct = createRedisEngine(redis);
    await openFiles();
    engine = resilient();
    // The first call loads the script and learns the epoch; give a busy machine the time for it.
    await vi.waitFor(() => admitted(direct, callOf(caller())), { timeout: 5_000 });
  });
  afterEach(async () => {
    await gatewayDies();
    await Promise.all(connections.splice(0).map((connection) => connection.close()));
    await server.close();
    await rm(directory, { recursive: true, force: true });
  });

  it('adds at most 50 ms to a call when Redis is frozen, then opens the circuit and adds nothing', async () => {
    const writeMs = async () => {
      const began = performance.now();
      await spool.append({ kind: 'void', lease: { id: newId(), shard: 0, enterpriseId: newId() } });
      return performance.now() - began;
    };
    const who = caller({ 3: [limit({ metric: 'requests', window: 'minute', amount: 1_000 })] });
    await admitted(engine, callOf(who));
    server.freeze();
    for (let call = 0; call < 3; call += 1) {
      const began = performance.now();
      const late = latenessOf(50);
      expect((await admitted(engine, callOf(who))).degraded).toBe(true);
      const tookMs = performance.now() - began;
      const diskMs = await writeMs();
      // The engine grants a reply the time that its own timer came late, once more; and it writes down what it admits.
      expect(tookMs).toBeLessThan(50 + slackMs + 2 * (await late) + 2 * diskMs);
    }
    expect(engine.stateOf(0)).not.toBe('closed');
    let addedMs = 0;
    for (let call = 0; call < 20; call += 1) {
      const began = performance.now();
      await admitted(engine, callOf(who));
      // What it writes down takes as long as the disk takes: about as long as the next line does.
      addedMs += performance.now() - began - (await writeMs());
    }
    expect(addedMs / 20).toBeLessThan(5);
    server.thaw();
    await untilShared();
    expect((await admitted(engine, callOf(who))).degraded).toBe(false);
  });

  it('leaves no lease and no charge of calls that got no answer, once Redis runs on', async () => {
    const who = caller({ 3: [limit({ metric: 'concurrency', amount: 3 })] });
    server.freeze();
    await Promise.all(
      Array.from({ length: 3 }, () =>
        expect(direct.admit(callOf(who))).rejects.toMatchObject({ code: 'quota_unavailable' }),
      ),
    );
    server.thaw();
    await vi.waitFor(async () => {
      const usage = await peek(direct, who);
      expect(usage.map(({ inFlight }) => inFlight)).toEqual([0, 0, 0, 0]);
      expect(usage[0]?.month).toMatchObject({ requests: 0n, reservedTokens: 0n });
    });
    const open = await redis.client.zcard(redis.keys(0).leases);
    expect(open).toBe(1); // The one of the set-up.
    for (let call = 0; call < 3; call += 1) await admitted(direct, callOf(who));
    await refused(direct, callOf(who));
  });

  it('falls to the local limits in less than 5 ms when Redis is killed', async () => {
    const who = caller();
    await admitted(engine, callOf(who));
    await server.kill();
    await vi.waitFor(() => expect(redis.client.status).not.toBe('ready'));
    const times: number[] = [];
    for (let call = 0; call < 20; call += 1) {
      const began = performance.now();
      expect((await admitted(engine, callOf(who))).degraded).toBe(true);
      times.push(performance.now() - began);
    }
    expect(times.sort((a, b) => a - b)[10]).toBeLessThan(5);
  });

  it('gives each gateway its share of rates and slots, and of budgets a part of what was left', async () => {
    gateways = 2;
    const who = caller({
      0: [limit({ metric: 'cost', window: 'month', amount: costOf(10, 20) * 101n })],
      3: [limit({ metric: 'concurrency', amount: 8 })],
    });
    // 100 calls' worth of budget is left: 10 % of it is 10 calls, for two gateways 5 each; 4 slots each.
    await admitted(engine, callOf(who));
    await server.kill();
    await openCircuit(caller());
    const leases: Lease[] = [];
    for (let call = 0; call < 4; call += 1)
      leases.push((await admitted(engine, callOf(who))).lease);
    expect((await refused(engine, callOf(who))).violations).toMatchObject([
      { metric: 'concurrency', limit: 4n, used: 4n },
    ]);
    for (const lease of leases) await settle(engine, who, lease, 10, 20);
    await admitted(engine, callOf(who));
    expect((await refused(engine, callOf(who))).violations).toMatchObject([
      { metric: 'cost', limit: costOf(10, 20) * 5n, scope: { level: 'enterprise' } },
    ]);
    const exposure = engine.exposure();
    expect(exposure.worstCaseNano).toBe(costOf(10, 20) * 10n);
    expect(exposure.admittedNano).toBeGreaterThanOrEqual(costOf(10, 20) * 5n);
    expect(exposure.spooled).toBe(4);
  });

  it('spends nothing of a budget of which it knows nothing', async () => {
    const who = caller({ 0: [limit({ metric: 'cost', window: 'month', amount: 10n ** 12n })] });
    await server.kill();
    await openCircuit(caller());
    await refused(engine, callOf(who));
  });

  it('keeps a sliding window of its own', async () => {
    const who = caller({ 2: [limit({ metric: 'tokens', window: 'minute', amount: 100 })] });
    await server.kill();
    await openCircuit(caller());
    const { lease } = await admitted(engine, callOf(who));
    await admitted(engine, callOf(who));
    await admitted(engine, callOf(who));
    const refusal = await refused(engine, callOf(who));
    expect(refusal.retryAfterMs).toBeGreaterThan(55_000);
    await settle(engine, who, lease, 0, 5);
    await admitted(engine, callOf(who, { output: 0 }));
  });

  it('answers 503 in mode closed and admits all in mode open, with an exposure without bound', async () => {
    const who = caller({ 0: [limit({ metric: 'requests', window: 'total', amount: 0 })] });
    await server.kill();
    await openCircuit(caller());
    mode = 'closed';
    await expect(engine.admit(callOf(who))).rejects.toMatchObject({
      code: 'quota_unavailable',
      httpStatus: 503,
    });
    mode = 'open';
    await admitted(engine, callOf(who));
    expect(engine.exposure().worstCaseNano).toBeNull();
  });

  it('books what was settled meanwhile once when Redis is back, with its charges', async () => {
    const who = caller({
      0: [limit({ metric: 'cost', window: 'day', amount: costOf(10, 20) * 1_000n })],
    });
    const before = (await admitted(engine, callOf(who))).lease;
    const neverSent = (await admitted(engine, callOf(who))).lease;
    server.freeze();
    await openCircuit(caller());
    const local = (await admitted(engine, callOf(who))).lease;
    expect(local.epoch).toBeUndefined();
    expect(await settle(engine, who, before, 10, 5)).toMatchObject({ outcome: 'settled', seq: 0 });
    expect(await settle(engine, who, local, 10, 7)).toMatchObject({ outcome: 'settled', seq: 0 });
    expect(await settle(engine, who, local, 10, 7)).toEqual({ outcome: 'already_settled' });
    await engine.void(neverSent);
    expect(engine.exposure().spooled).toBe(3);
    server.thaw();
    await vi.waitFor(() => expect(engine.exposure().spooled).toBe(0), { timeout: 10_000 });
    const ids = await outboxIds();
    expect(ids.filter((id) => id === before.id)).toHaveLength(1);
    expect(ids.filter((id) => id === local.id)).toHaveLength(1);
    expect(ids).not.toContain(neverSent.id);
    const usage = (await peek(direct, who))[0];
    expect(usage?.month).toMatchObject({ requests: 2n, tokens: 32n, reservedTokens: 0n });
    expect(usage?.limits[0]?.used).toBe(costOf(20, 12));
    expect(usage?.inFlight).toBe(0);
  });

  it('books a call once that Redis had admitted without answering and the local engine then took over', async () => {
    const who = caller();
    const call = callOf(who);
    server.freeze();
    const { lease } = await admitted(engine, call);
    expect(lease.epoch).toBeUndefined();
    await settle(engine, who, lease, 10, 5);
    server.thaw();
    await vi.waitFor(() => expect(engine.exposure().spooled).toBe(0), { timeout: 10_000 });
    expect((await outboxIds()).filter((id) => id === lease.id)).toHaveLength(1);
    const usage = (await peek(direct, who))[3];
    expect(usage?.inFlight).toBe(0);
    expect(usage?.month).toMatchObject({ requests: 1n, tokens: 15n, reservedTokens: 0n });
  });

  it('delivers what a dead gateway left in its spool, once, also when it is read twice', async () => {
    const who = caller();
    await server.kill();
    await openCircuit(caller());
    const { lease } = await admitted(engine, callOf(who));
    await settle(engine, who, lease, 10, 5);
    await gatewayDies();
    await redisReturns();
    await openFiles();
    expect(spool.pending).toBe(1);
    const lines: unknown[] = [];
    await expect(
      spool.drain(async (line) => {
        lines.push(line);
        throw new Error('a crash in the middle');
      }),
    ).rejects.toThrow('a crash');
    engine = resilient();
    await untilBooked();
    expect((await outboxIds()).filter((id) => id === lease.id)).toHaveLength(1);
    expect(lines).toHaveLength(1);
  });

  it('charges by estimate, once, what a gateway had in flight when it was killed with Redis away', async () => {
    const who = caller();
    await server.kill();
    await openCircuit(who);
    for (const { lease } of admissions.list()) await engine.void(lease);
    const settled = (await admitted(engine, callOf(who))).lease;
    const voided = (await admitted(engine, callOf(who))).lease;
    const open = (await admitted(engine, callOf(who, { input: 30 }))).lease;
    await settle(engine, who, settled, 10, 5);
    await engine.void(voided);
    await gatewayDies();
    // Killed twice: the second process dies before Redis is back.
    await openFiles();
    engine = resilient();
    expect(engine.exposure().spooled).toBe(2);
    await gatewayDies();
    await redisReturns();
    await openFiles();
    engine = resilient();
    await untilBooked();
    const entries = await redis.client.xrange(redis.keys(0).outbox, '-', '+');
    const events = entries.map(([, fields]) => {
      const event = fields[fields.indexOf('event') + 1] ?? '';
      return JSON.parse(event) as ReturnType<typeof eventOf>;
    });
    expect(events.map(({ id }) => id).sort()).toEqual([settled.id, open.id].sort());
    const charged = events.find(({ id }) => id === open.id)?.data;
    expect(charged).toMatchObject({
      status: 'expired',
      estimated: true,
      usage: { input: 30, output: 0 },
      costNano: costOf(30, 0).toString(),
    });
    const usage = (await peek(direct, who))[3];
    expect(usage?.month).toMatchObject({
      requests: 2n,
      tokens: 45n,
      costNano: costOf(40, 5),
      reservedTokens: 0n,
    });
    await gatewayDies();
    await openFiles();
    expect(admissions.list()).toEqual([]);
    engine = resilient();
    expect(engine.exposure().spooled).toBe(0);
  });

  it('does not lose a settlement that the disk did not take at first', async () => {
    const who = caller();
    await server.kill();
    await openCircuit(who);
    const { lease } = await admitted(engine, callOf(who));
    const full = vi.spyOn(spool, 'append').mockRejectedValueOnce(new Error('no space left'));
    await expect(settle(engine, who, lease, 10, 5)).rejects.toThrow('no space left');
    full.mockRestore();
    expect(await settle(engine, who, lease, 10, 5)).toMatchObject({ outcome: 'settled' });
    expect(await settle(engine, who, lease, 10, 5)).toEqual({ outcome: 'already_settled' });
  });

  it('admits nothing by itself that it cannot write down', async () => {
    const who = caller({ 3: [limit({ metric: 'concurrency', amount: 1 })] });
    await server.kill();
    await openCircuit(caller());
    const full = vi.spyOn(admissions, 'begin').mockRejectedValueOnce(new Error('no space left'));
    await expect(engine.admit(callOf(who))).rejects.toMatchObject({ code: 'quota_unavailable' });
    full.mockRestore();
    await admitted(engine, callOf(who));
  });

  it('books a call that it admitted by itself and that was silent for longer than its lease', async () => {
    const who = caller({ 3: [limit({ metric: 'concurrency', amount: 1 })] });
    await server.kill();
    await openCircuit(caller());
    const { lease } = await admitted(engine, callOf(who, { leaseMs: 1 }));
    // Its slot comes free, as it would in Redis.
    await vi.waitFor(() => admitted(engine, callOf(who)), { timeout: 5_000 });
    expect(await settle(engine, who, lease, 10, 5)).toMatchObject({ outcome: 'settled' });
    expect(engine.exposure().spooled).toBe(1);
  });

  it('extends a running stream within its share, and refuses beyond it', async () => {
    const who = caller({ 0: [limit({ metric: 'tokens', window: 'month', amount: 1_030 })] });
    const { lease } = await admitted(engine, callOf(who));
    await server.kill();
    await openCircuit(caller());
    const observed = { inputTokens: 10, outputTokens: 15, costNano: 0n };
    const chunk = { outputTokens: 60, costNano: 0n, observed };
    expect((await engine.extend(lease, chunk)).outcome).toBe('granted');
    expect((await engine.extend(lease, chunk)).outcome).toBe('refused');
    expect((await engine.renew([{ lease, observed, leaseMs: 60_000 }])).has(lease.id)).toBe(true);
  });

  it('shares limits again within seconds when it was started while Redis was down', async () => {
    await server.kill();
    await engine.close();
    redis = connect(50);
    direct = createRedisEngine(redis);
    engine = resilient();
    expect(engine.degraded).toBe(true);
    const who = caller();
    expect((await admitted(engine, callOf(who))).degraded).toBe(true);
    await openCircuit(who);
    await server.restart();
    await declareEpoch();
    const began = Date.now();
    await untilShared();
    expect(Date.now() - began).toBeLessThan(5_000);
    expect((await admitted(engine, callOf(who))).degraded).toBe(false);
  });

  it('is degraded until it has found the epoch of every shard, without a call', async () => {
    await untilShared();
    await redis.client.flushall();
    await expect(direct.admit(callOf(caller()))).rejects.toMatchObject({
      code: 'quota_unavailable',
    });
    expect(engine.degraded).toBe(true);
    await declareEpoch();
    await untilShared();
  });

  it('makes no storm of connections while Redis is down', async () => {
    const connecting = vi.fn();
    await server.kill();
    await vi.waitFor(() => expect(redis.client.status).not.toBe('ready'));
    redis.client.on('connecting', connecting);
    const began = Date.now();
    while (Date.now() - began < 1_000) await engine.admit(callOf(caller()));
    expect(connecting.mock.calls.length).toBeLessThan(12);
  });

  it('survives SCRIPT FLUSH under load without an error', async () => {
    const who = caller({ 0: [limit({ metric: 'cost', window: 'total', amount: 10n ** 18n })] });
    const steady = connect(5_000);
    await steady.ready();
    const onIt = createRedisEngine(steady);
    let ended = 0;
    const load = Promise.all(
      Array.from({ length: 8 }, async () => {
        for (let call = 0; call < 40; call += 1) {
          const { lease } = await admitted(onIt, callOf(who));
          const result = await settle(onIt, who, lease, 1, 1);
          expect(result.outcome).toBe('settled');
          ended += 1;
        }
      }),
    );
    while (ended < 320) await redis.client.script('FLUSH', 'SYNC').catch(() => undefined);
    await load;
    expect((await peek(onIt, who))[0]?.month.requests).toBe(320n);
  });

  it('runs a script once although the socket dies under it', async () => {
    const who = caller();
    const killer = connect(5_000);
    await killer.ready();
    const steady = connect(5_000);
    await steady.ready();
    const onIt = createRedisEngine(steady);
    await admitted(onIt, callOf(who));
    const calls = Array.from({ length: 200 }, () => callOf(who));
    const first = calls.map((call) => onIt.admit(call));
    await killer.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    const outcomes = await Promise.allSettled(first);
    expect(outcomes.some(({ status }) => status === 'rejected')).toBe(true);
    await steady.ready();
    // Whatever got no answer ends undone, although its void could not follow on the connection that died.
    const answered = outcomes.filter(({ status }) => status === 'fulfilled').length;
    await vi.waitFor(async () => expect((await peek(onIt, who))[3]?.inFlight).toBe(1 + answered), {
      timeout: 5_000,
    });
    await vi.waitFor(
      async () => {
        for (const [index, call] of calls.entries()) {
          if (outcomes[index]?.status === 'fulfilled') continue;
          await expect(onIt.admit(call)).rejects.toMatchObject({ code: 'conflict' });
        }
      },
      { timeout: 5_000 },
    );
    expect((await peek(onIt, who))[3]?.inFlight).toBe(1 + answered);
  });

  describe.each(['an error reply of Redis', 'a fault of the limiter itself'] as const)(
    'after %s',
    (fault) => {
      let who: Tenant;
      beforeEach(async () => {
        who = caller({ 0: [limit({ metric: 'cost', window: 'month', amount: 10n ** 12n })] });
        if (fault === 'an error reply of Redis') {
          // What a script meets that finds a key of another type.
          await redis.client.set(redis.keys(0).scope(who.enterpriseId), 'no hash');
          await expect(direct.admit(callOf(who))).rejects.toThrow();
        } else {
          vi.spyOn(direct, 'admit').mockRejectedValue(new TypeError('x is not a function'));
        }
      });

      it('does what the mode of the enterprise says, and admits nothing by itself', async () => {
        mode = 'closed';
        await expect(engine.admit(callOf(who))).rejects.toMatchObject({
          code: 'quota_unavailable',
          httpStatus: 503,
        });
        mode = 'local';
        // Nothing is known of what is left of the budget: nothing may be spent of it.
        expect((await refused(engine, callOf(who))).violations).toMatchObject([{ metric: 'cost' }]);
        mode = 'open';
        expect((await admitted(engine, callOf(who))).degraded).toBe(true);
        expect(engine.exposure().worstCaseNano).toBeNull();
      });
    },
  );

  it('over-admits no more than it says when Redis is killed under load, and books each call once', async () => {
    const budget = costOf(10, 20) * 1_000n;
    const who = caller({ 0: [limit({ metric: 'cost', window: 'month', amount: budget })] });
    const settled = new Set<string>();
    let killed: Promise<void> | null = null;
    const callers = Array.from({ length: 16 }, async () => {
      for (;;) {
        const result = await engine.admit(callOf(who));
        // Its share of what was left is used up.
        if (result.outcome !== 'admitted') return;
        await settle(engine, who, result.lease, 10, 20);
        settled.add(result.lease.id);
        if (settled.size >= 200) killed ??= server.kill();
      }
    });
    await Promise.all(callers);
    await killed;
    const { admittedNano, worstCaseNano } = engine.exposure();
    expect(settled.size).toBeGreaterThan(220);
    expect(admittedNano).toBeGreaterThan(0n);
    expect(worstCaseNano).toBeGreaterThanOrEqual(admittedNano);
    expect(worstCaseNano).toBeLessThanOrEqual(budget / 10n);
    await redisReturns();
    await untilBooked();
    await vi.waitFor(
      async () =>
        expect((await peek(direct, who)).map(({ inFlight }) => inFlight)).toEqual([0, 0, 0, 0]),
      { timeout: 10_000 },
    );
    const ids = await outboxIds();
    expect(new Set(ids).size).toBe(ids.length);
    expect(new Set(ids)).toEqual(settled);
    const [usage] = await peek(direct, who);
    expect(usage?.limits[0]).toMatchObject({
      used: costOf(10, 20) * BigInt(settled.size),
      reserved: 0n,
    });
  });

  it('frees the slots of a gateway that was killed, though its keys stay hot', async () => {
    const who = caller({ 3: [limit({ metric: 'concurrency', amount: 20 })] });
    const steady = connect(5_000);
    await steady.ready();
    const onIt = createRedisEngine(steady);
    for (let call = 0; call < 20; call += 1) await admitted(onIt, callOf(who, { leaseMs: 300 }));
    const reaper = new LeaseReaper(steady, { batch: 50 });
    await vi.waitFor(
      async () => {
        // Traffic on the same keys, as a key's own expiry would never survive it.
        await onIt.admit(callOf(who, { leaseMs: 300 }));
        await reaper.reap(0);
        const { lease } = await admitted(onIt, callOf(who));
        await onIt.void(lease);
      },
      { timeout: 5_000, interval: 50 },
    );
  });
});
