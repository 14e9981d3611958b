import { newId, type PolicyScope, shardOf, usageEventOf } from '@weir/domain';
import {
  connectQuotaRedis,
  createRedisEngine,
  PolicyPublisher,
  type QuotaEngine,
  type QuotaRedis,
} from '@weir/quota';
import {
  createTestDatabase,
  openTestRedis,
  type TestTenant,
  testTenant,
  usageEvent,
  waitFor,
} from '@weir/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { reconcileAll } from '../jobs/reconciliation.js';
import { openHarness, shardCount, type WorkerHarness } from '../testing/worker-harness.js';

const zone = 'Asia/Shanghai';
let harness: WorkerHarness;
let quota: QuotaRedis;
let engine: QuotaEngine;
let tenant: TestTenant;
let path: PolicyScope[];

beforeAll(async () => {
  harness = await openHarness({ database: await createTestDatabase(), redis: openTestRedis() }, []);
  tenant = testTenant({ timeZone: zone });
  const { enterprise, departments, user, key } = tenant;
  const [department] = departments;
  if (!department) throw new Error('a department');
  const { prisma } = harness.database;
  await prisma.enterprise.create({
    data: {
      ...enterprise,
      timeZone: zone,
      currency: 'USD',
      settings: {
        windowOutputReservePercent: 50,
        onCapBeyondBudget: 'refuse',
        degradedMode: 'local',
        degradedBudgetSharePercent: 10,
        leaseMs: 5_000,
      },
    },
  });
  await prisma.department.create({ data: { ...department, enterpriseId: enterprise.id } });
  await prisma.user.create({
    data: { ...user, enterpriseId: enterprise.id, departmentId: department.id },
  });
  await prisma.apiKey.create({
    data: {
      ...key,
      enterpriseId: enterprise.id,
      userId: user.id,
      prefix: 'wr_x',
      sha256: '0'.repeat(64),
      allowedModels: [],
    },
  });
  path = [
    { level: 'enterprise', ...enterprise, limits: [] },
    { level: 'department', ...department, limits: [] },
    { level: 'user', ...user, limits: [] },
    { level: 'key', ...key, limits: [] },
  ];
  quota = connectQuotaRedis({
    url: harness.redis.url,
    prefix: harness.redis.prefix,
    shardCount,
    commandTimeoutMs: 5_000,
  });
  engine = createRedisEngine(quota);
  harness.start({ REAP_INTERVAL_MS: '100' });
  await quota.ready();
  // The policies come first, the epoch last.
  await waitFor('the shard has its epoch', () => counters().then(() => true), 40_000);
}, 60_000);
afterAll(async () => {
  await quota.close();
  await harness.close();
});

const versionOf = () => new PolicyPublisher(quota).version(tenant.enterprise.id);
const shard = () => shardOf(tenant.enterprise.id, shardCount);

async function admit(leaseMs = 30_000) {
  const atMs = Date.now();
  const leaseId = newId(atMs);
  const { data } = usageEvent(tenant, atMs, { id: leaseId });
  const result = await engine.admit({
    leaseId,
    shard: shard(),
    enterpriseId: tenant.enterprise.id,
    timeZone: zone,
    policyVersion: (await versionOf()) ?? 0,
    path,
    model: data.modelAsked,
    reserve: {
      windowInputTokens: 1_000,
      windowOutputTokens: 500,
      budgetInputTokens: 1_000,
      budgetOutputTokens: 500,
      costNano: 7_500_000n,
    },
    leaseMs,
    draft: {
      enterprise: data.enterprise,
      departments: data.departments,
      user: data.user,
      key: data.key,
      currency: data.currency,
      modelAsked: data.modelAsked,
      modelServed: data.modelServed,
      provider: data.provider,
      route: data.route,
      streamed: data.streamed,
      requestId: data.requestId,
      attempt: data.attempt,
      price: data.price,
      queueWaitMs: data.queueWaitMs,
      tags: data.tags,
    },
  });
  if (result.outcome !== 'admitted') throw new Error(`not admitted: ${result.outcome}`);
  return { lease: result.lease, data };
}

async function call(): Promise<void> {
  const { lease, data } = await admit();
  const event = usageEventOf(lease.id, {
    ...data,
    periodId: lease.periodId,
    reservedAt: new Date(lease.reservedAtMs).toISOString(),
  });
  const costNano = BigInt(data.costNano);
  await engine.settle(lease, { inputTokens: 1_000, outputTokens: 200, costNano }, event);
}

async function counters() {
  const usages = await engine.peek({
    shard: shard(),
    enterpriseId: tenant.enterprise.id,
    timeZone: zone,
    scopes: path,
  });
  return usages.map(({ inFlight, month }) => ({
    inFlight,
    requests: month.requests,
    inputTokens: month.inputTokens,
    outputTokens: month.outputTokens,
    costNano: month.costNano,
    reserved: month.reservedTokens,
  }));
}

const rowCount = async () => {
  const { rows } = await harness.database.pool.query('select count(*)::int as n from usage_event');
  return Number(rows[0].n);
};
const reconciled = async () => {
  await reconcileAll({
    database: harness.database,
    engine,
    shardCount,
    clock: { now: () => Date.now() },
    isDrained: () => Promise.resolve(true),
  });
  const { rows } = await harness.database.pool.query(
    'select drifted, settled, details from reconcile_run order by at desc, id desc limit 1',
  );
  return rows[0];
};

describe('counters and books', () => {
  it('agree after calls that were settled and one whose gateway died, and nothing stays reserved', async () => {
    for (let n = 0; n < 5; n += 1) await call();
    // Nobody renews or settles it: the reaper charges the prompt as it was reserved.
    await admit(200);
    await waitFor('all six are booked', async () => (await rowCount()) === 6, 40_000);
    for (const scope of await counters()) {
      expect(scope).toMatchObject({ inFlight: 0, requests: 6n, inputTokens: 6_000n, reserved: 0n });
    }
    expect(await reconciled()).toMatchObject({ drifted: 0, settled: true });
    const { rows } = await harness.database.pool.query(
      `select status, estimated from usage_event where status <> 'ok'`,
    );
    expect(rows).toEqual([{ status: 'expired', estimated: true }]);
  }, 60_000);

  it('agree again after Redis has lost everything: counters and policies are rebuilt from Postgres', async () => {
    const before = await counters();
    const keys = await harness.redis.client.keys(`${harness.redis.prefix}:*`);
    await harness.redis.client.unlink(...keys.filter((key) => !key.includes('weir-')));
    await waitFor(
      'a new epoch',
      async () => (await counters()).every(({ requests }) => requests === 6n),
      40_000,
    );
    expect(await counters()).toEqual(before);
    expect(await versionOf()).not.toBeNull();
    await waitFor('calls are admitted again', () => call().then(() => true), 40_000);
    await waitFor('the seventh is booked', async () => (await rowCount()) === 7, 40_000);
    expect(await reconciled()).toMatchObject({ drifted: 0, settled: true });
  }, 90_000);

  it('show by how much they differ, and where, when a row is missing from the books', async () => {
    await harness.database.pool.query(
      `delete from usage_event where event_id = (select event_id from usage_event where status = 'ok' limit 1)`,
    );
    const run = await reconciled();
    expect(run).toMatchObject({ drifted: 4, settled: true });
    for (const { counter } of run.details) {
      expect(counter).toEqual({
        requests: '1',
        inputTokens: '1000',
        outputTokens: '200',
        costNano: '4500000',
      });
    }
  });
});
