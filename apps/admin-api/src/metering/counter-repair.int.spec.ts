import { newId, periodAt, shardOf } from '@weir/domain';
import {
  loadScopeCounters,
  noteSources,
  openDatabase,
  UsageLedger,
  type Database,
} from '@weir/persistence';
import { connectQuotaRedis, EpochKeeper, type QuotaRedis } from '@weir/quota';
import {
  createTestDatabase,
  numbered,
  openTestRedis,
  usageEvent,
  type TestDatabase,
  type TestRedis,
} from '@weir/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp, type TestClient } from '../testing/test-app.js';
import { makeTestWorld, signInAll, type TestWorld } from '../testing/test-world.js';

const timeZone = 'Asia/Shanghai';

let database: TestDatabase;
let redis: TestRedis;
let db: Database;
let test: TestApp;
let world: TestWorld;
let owner: TestClient;
let quota: QuotaRedis;
let shard: number;
let offset = 0n;

beforeAll(async () => {
  database = await createTestDatabase();
  redis = openTestRedis();
  db = openDatabase({ url: database.url, poolMax: 4 });
  test = await startTestApp({
    databaseUrl: database.url,
    redisUrl: redis.url,
    redisPrefix: redis.prefix,
    settings: { LIVE_TIMEOUT_MS: '2000' },
  });
  world = await makeTestWorld(test.app, 'acme');
  ({ owner } = await signInAll(test, world));
  const shardCount = test.config.SHARD_COUNT;
  shard = shardOf(world.enterpriseId, shardCount);
  const epoch = newId();
  await book(1, epoch);
  await book(2, epoch);
  quota = connectQuotaRedis({
    url: redis.url,
    prefix: redis.prefix,
    shardCount,
    commandTimeoutMs: 2_000,
  });
  await quota.ready();
  // The counters begin as what the books have.
  await new EpochKeeper(quota, {
    loadLedgerState: async () => null,
    loadSeeds: async () => loadScopeCounters(db.pool, shard, shardCount, Date.now()),
    republish: async () => undefined,
  }).ensure(shard);
});
beforeEach(() => drained());
afterAll(async () => {
  await quota?.close();
  await test?.close();
  await db?.close();
  await redis?.close();
  await database?.drop();
});

async function book(seq: number, epoch: string): Promise<void> {
  const named = (id: string, name: string) => ({ id, name });
  const event = usageEvent(
    {
      enterprise: named(world.enterpriseId, 'Enterprise acme'),
      departments: [named(world.marketing, 'Marketing'), named(world.content, 'Content Studio')],
      user: named(world.users.member, 'The member'),
      key: named(world.keys.member.id, 'laptop'),
      timeZone,
    },
    Date.now(),
  );
  const value = Buffer.from(JSON.stringify(numbered(event, seq, { shard, epoch })));
  const result = await new UsageLedger(db.pool).bookSlice({
    topic: 'test',
    partition: 0,
    records: [{ offset: (offset += 1n), key: null, value }],
    order: 'unfenced',
  });
  if (result.outcome !== 'booked' || result.booked !== 1)
    throw new Error('an event was not booked');
}

const drained = (entries = 0, atMs = Date.now()) =>
  noteSources(db.pool, [{ shard, entries, oldestAtMs: null }], 0n, atMs);

/** Writes into the counter, past everything: one request and 3 nano more, `sign` −1: less. */
async function tamper(scopeId: string, sign = 1): Promise<void> {
  const key = quota.keys(shard).scope(scopeId);
  const field = periodAt('month', Date.now(), timeZone).id;
  const record = await quota.client.hgetBuffer(key, field);
  if (record === null) throw new Error('there is no counter');
  record.writeDoubleLE(record.readDoubleLE(56) + sign, 56);
  record.writeDoubleLE(record.readDoubleLE(104) + 3 * sign, 104);
  await quota.client.hset(key, field, record);
}
const comparison = async () => (await owner.call('getReconciliation')).body;
const repair = (scopeId: string) =>
  owner.call('repairCounter', { body: { scopeId, reason: 'the disk was full' } });

describe('a counter that differs from the ledger', () => {
  it.each([
    ['more', 1, '3', '1'],
    ['less', -1, '1', '-1'],
  ])(
    'with %s than it is set right, once, and the repair is on record',
    async (_name, sign, requests, back) => {
      expect(await comparison()).toMatchObject({ balanced: true });
      await tamper(world.content, sign);
      expect(await comparison()).toMatchObject({ balanced: false });

      const answer = await repair(world.content);
      expect(answer.status, answer.text).toBe(200);
      const { repairId, before, after } = answer.body;
      expect(before.requests).toBe(requests);
      expect(after).toMatchObject({ requests: '2', inputTokens: '2000', outputTokens: '400' });
      const balanced = await comparison();
      expect(balanced).toMatchObject({ balanced: true });

      expect((await repair(world.content)).body).toMatchObject({ repairId: null, before: after });
      const { scopes } = await comparison();
      expect(scopes).toEqual(balanced.scopes);

      const row = await db.prisma.counterRepair.findUniqueOrThrow({ where: { id: repairId } });
      expect(row).toMatchObject({
        scopeId: world.content,
        requests: BigInt(-back),
        reason: 'the disk was full',
        requestedBy: 'The owner',
      });
      expect(row.appliedAt).not.toBeNull();
      const { items } = (await owner.call('listAudit', { query: { search: repairId } })).body;
      expect(items).toMatchObject([
        {
          action: 'counter.repaired',
          targetId: world.content,
          before,
          after: { ...after, repairId },
        },
      ]);
    },
  );

  it('is finished on record when the process died after it had changed the counter', async () => {
    await tamper(world.marketing);
    const { repairId } = (await repair(world.marketing)).body;
    const before = await db.prisma.counterRepair.findUniqueOrThrow({ where: { id: repairId } });
    await db.prisma.counterRepair.update({ where: { id: repairId }, data: { appliedAt: null } });
    expect((await repair(world.marketing)).body.repairId).toBeNull();
    const after = await db.prisma.counterRepair.findUniqueOrThrow({ where: { id: repairId } });
    expect(after).toEqual({ ...before, appliedAt: after.appliedAt });
    expect(after.appliedAt).not.toBeNull();
  });
});

describe('a repair is refused, and leaves everything as it was', () => {
  const isRefused = async (reason: string) => {
    const counted = await db.prisma.counterRepair.count();
    const before = (await comparison()).scopes;
    const answer = await repair(world.content);
    expect(answer.status, answer.text).toBe(409);
    expect(answer.body.error.details.reason).toBe(reason);
    expect((await comparison()).scopes).toEqual(before);
    expect(await db.prisma.counterRepair.count()).toBe(counted);
  };

  it('while the worker has events to relay', async () => {
    await drained(1);
    await isRefused('lag');
  });

  it('while an event was charged that is not booked', async () => {
    const { seq } = quota.keys(shard);
    await quota.client.set(seq, '1');
    await isRefused('lag');
    await quota.client.del(seq);
  });

  it('while calls are open', async () => {
    const key = quota.keys(shard).scope(world.content);
    const one = Buffer.alloc(8);
    one.writeDoubleLE(1);
    await quota.client.hset(key, 'c', one);
    await isRefused('in-use');
    await quota.client.hdel(key, 'c');
  });

  it('while events are missing, or nobody has looked', async () => {
    const epoch = newId();
    await book(1, epoch);
    await book(3, epoch);
    await isRefused('holes');
    await db.pool.query('update ledger_source set checked_at = $1', [
      new Date(Date.now() - 120_000),
    ]);
    await isRefused('unknown-lag');
    await db.pool.query('delete from ledger_source');
    await isRefused('unknown-lag');
  });
});
