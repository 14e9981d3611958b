import { createHash } from 'node:crypto';
import {
  apiSchemas,
  costPicoOf,
  newId,
  noTokens,
  shardOf,
  usageEventOf,
  type UsageEventDraft,
} from '@weir/domain';
import { openDatabase, publishPolicies, UsageLedger, type Database } from '@weir/persistence';
import {
  connectQuotaRedis,
  createRedisEngine,
  EpochKeeper,
  PolicyPublisher,
  PolicyStore,
  type QuotaEngine,
  type QuotaRedis,
} from '@weir/quota';
import {
  createTestDatabase,
  openTestRedis,
  type TestDatabase,
  type TestRedis,
} from '@weir/testing';
import { DateTime } from 'luxon';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp, type TestClient } from '../testing/test-app.js';
import { makeTestWorld, signInAll, type TestWorld } from '../testing/test-world.js';

/* One call on its whole way: reserved, settled, booked. At every step all screens say the same, and the truth. */

const inputTokens = 1_000;
const outputTokens = 200;
/** 1,000 × 0.50 + 200 × 1.50 per million. */
const cost = '0.0008';

let database: TestDatabase;
let redis: TestRedis;
let db: Database;
let test: TestApp;
let world: TestWorld;
let owner: TestClient;
let manager: TestClient;
let member: TestClient;
let finance: TestClient;
let quota: QuotaRedis;
let engine: QuotaEngine;
let policies: PolicyStore;
let shard: number;

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
  ({ owner, manager, member, finance } = await signInAll(test, world));
  quota = connectQuotaRedis({
    url: redis.url,
    prefix: redis.prefix,
    shardCount: 8,
    commandTimeoutMs: 2_000,
  });
  await quota.ready();
  shard = shardOf(world.enterpriseId, 8);
  await new EpochKeeper(quota, {
    loadLedgerState: async () => null,
    loadSeeds: async () => [],
    republish: async () => {
      await publishPolicies(db.prisma, new PolicyPublisher(quota), world.enterpriseId, {
        all: true,
      });
    },
  }).ensure(shard);
  engine = createRedisEngine(quota);
  policies = new PolicyStore(quota);
});
afterAll(async () => {
  await quota?.close();
  await test?.close();
  await db?.close();
  await redis?.close();
  await database?.drop();
});

async function admitOne(secret: string) {
  const policy = await policies.refresh(createHash('sha256').update(secret).digest('hex'));
  if (policy === null) throw new Error('the key is unknown at the gateway');
  const [enterprise, ...rest] = policy.path;
  const user = rest.at(-2);
  const key = rest.at(-1);
  const price = policy.models.get('small')?.prices[0];
  const upstream = [...policy.upstreams.values()][0];
  if (!enterprise || !user || !key || !price || !upstream) throw new Error('policy is not whole');
  const named = ({ id, name }: { id: string; name: string }) => ({ id, name });
  const draft: UsageEventDraft = {
    enterprise: named(enterprise),
    departments: rest.slice(0, -2).map(named),
    user: named(user),
    key: named(key),
    currency: 'USD',
    modelAsked: 'small',
    modelServed: 'small',
    provider: named(upstream),
    route: '/v1/chat/completions',
    streamed: false,
    requestId: `req-${newId()}`,
    attempt: 1,
    price: { id: price.id, picoPerToken: price.picoPerToken, picoPerRequest: '0' },
    queueWaitMs: 0,
    tags: {},
  };
  const result = await engine.admit({
    leaseId: newId(),
    shard,
    enterpriseId: world.enterpriseId,
    timeZone: 'Asia/Shanghai',
    policyVersion: policy.version,
    path: policy.path,
    model: 'small',
    reserve: {
      windowInputTokens: inputTokens,
      windowOutputTokens: 500,
      budgetInputTokens: inputTokens,
      budgetOutputTokens: 500,
      costNano: 1_250_000n,
    },
    leaseMs: 60_000,
    draft,
  });
  if (result.outcome !== 'admitted') throw new Error(result.outcome);
  return { draft, lease: result.lease };
}

async function settleOne({ draft, lease }: Awaited<ReturnType<typeof admitOne>>) {
  const usage = { ...noTokens, input: inputTokens, output: outputTokens };
  const costPico = costPicoOf(usage, draft.price);
  const at = new Date(lease.reservedAtMs).toISOString();
  const event = usageEventOf(lease.id, {
    ...draft,
    kind: 'usage',
    adjusts: null,
    usage,
    costPico: costPico.toString(),
    costNano: (costPico / 1_000n).toString(),
    periodId: lease.periodId,
    reservedAt: at,
    startedAt: at,
    firstTokenAt: null,
    endedAt: at,
    status: 'ok',
    estimated: false,
    late: false,
  });
  const actual = { inputTokens, outputTokens, costNano: costPico / 1_000n };
  const settled = await engine.settle(lease, actual, event);
  if (settled.outcome !== 'settled') throw new Error(settled.outcome);
  const { seq, epoch } = settled;
  return { ...event, data: { ...event.data, position: { shard, epoch, seq } } };
}

const pathIds = () => [
  world.enterpriseId,
  world.marketing,
  world.content,
  world.users.member,
  world.keys.member.id,
];
const today = () => DateTime.now().setZone('Asia/Shanghai');
const thisMonth = () => ({
  from: today().startOf('month').toISODate() ?? '',
  to: today().startOf('month').plus({ months: 1 }).toISODate() ?? '',
});

describe('one call on its way into the books', () => {
  it('is reserved, settled and booked, and every screen agrees at every step', async () => {
    const admitted = await admitOne(world.keys.member.secret);
    for (const id of pathIds()) {
      const node = apiSchemas.nodeDetailSchema.parse((await owner.call('getNode', { id })).body);
      expect(node.month, node.level).toMatchObject({
        requests: '0',
        cost: '0.00',
        reservedCost: '0.00125',
        reservedTokens: '1500',
        inFlight: 1,
      });
    }
    const engineering = (await owner.call('getNode', { id: world.engineering })).body;
    expect(engineering.month).toMatchObject({ reservedCost: '0.00', inFlight: 0 });

    const event = await settleOne(admitted);
    const tree = (await owner.call('getOrganisation')).body;
    expect(tree.live).toBe(true);
    for (const id of [world.enterpriseId, world.marketing, world.content, world.users.member]) {
      const node = tree.nodes.find((each: { id: string }) => each.id === id);
      expect(node.month).toMatchObject({
        requests: '1',
        tokens: '1200',
        cost,
        reservedCost: '0.00',
        inFlight: 0,
      });
    }
    const marketing = tree.nodes.find((each: { id: string }) => each.id === world.marketing);
    expect(marketing.limits).toMatchObject([
      { metric: 'cost', window: 'month', amount: '100.00', used: cost, reserved: '0.00' },
    ]);
    expect(marketing.limits[0].resetsAt).toBe(
      today().startOf('month').plus({ months: 1 }).toUTC().toISO(),
    );

    // Charged, not booked yet: said as a lag and a difference, not hidden.
    const open = (await finance.call('getReconciliation')).body;
    expect(open).toMatchObject({ balanced: false, metering: { lagEvents: '1' } });
    expect(open.scopes.map((scope: { difference: string }) => scope.difference)).toEqual(
      Array.from({ length: 5 }, () => cost),
    );

    const value = new TextEncoder().encode(JSON.stringify(event));
    const booked = await new UsageLedger(db.pool).bookSlice({
      topic: 'outbox',
      partition: shard,
      records: [{ offset: 1n, key: null, value }],
      order: 'unfenced',
    });
    expect(booked).toMatchObject({ outcome: 'booked', booked: 1, deadLetters: 0 });

    const closed = (await finance.call('getReconciliation')).body;
    expect(closed).toMatchObject({ balanced: true, metering: { lagEvents: '0', holes: [] } });
    expect(new Set(closed.scopes.map((scope: { id: string }) => scope.id))).toEqual(
      new Set(pathIds()),
    );
    for (const scope of closed.scopes) {
      const figures = { requests: '1', tokens: '1200', cost };
      expect(scope).toMatchObject({ counter: figures, ledger: figures, rollup: figures });
    }

    const request = (await member.call('getRequest', { query: { id: event.data.requestId } })).body;
    expect(request.attempts).toMatchObject([
      { eventId: event.id, department: 'Marketing / Content Studio', cost, status: 'ok' },
    ]);
    const byEvent = await owner.call('getRequest', { query: { id: event.id } });
    expect(byEvent.body).toEqual(request);
  });

  it('is reported with the same totals whatever the grouping, to each as far as they may see', async () => {
    const totals = {
      requests: '1',
      inputTokens: '1000',
      outputTokens: '200',
      tokens: '1200',
      cost,
    };
    for (const client of [owner, finance, manager, member]) {
      for (const groupBy of ['none', 'user', 'key', 'model', 'provider', 'department']) {
        for (const granularity of ['none', 'hour', 'day', 'month']) {
          const answer = await client.call('getUsage', {
            query: { ...thisMonth(), groupBy, granularity },
          });
          expect(answer.status, answer.text).toBe(200);
          expect(answer.body.totals).toMatchObject(totals);
          if (groupBy !== 'department') expect(answer.body.rows).toMatchObject([totals]);
        }
      }
    }
    const report = (
      await owner.call('getUsage', {
        query: { ...thisMonth(), groupBy: 'key', granularity: 'day' },
      })
    ).body;
    expect(report).toMatchObject({ timeZone: 'Asia/Shanghai', currency: 'USD' });
    expect(report.rows).toMatchObject([
      {
        groupId: world.keys.member.id,
        groupName: 'laptop',
        deleted: false,
        period: today().toISODate(),
      },
    ]);
    const engineering = await owner.call('getUsage', {
      query: { ...thisMonth(), departmentId: world.engineering },
    });
    expect(engineering.body.totals).toMatchObject({ requests: '0', cost: '0.00' });
  });

  it('shows a manager the own departments, not those above', async () => {
    const { version } = (await owner.call('getUser', { id: world.users.manager })).body;
    const body = { departmentId: world.content };
    await owner.call('patchUser', { id: world.users.manager, version, body });
    const query = { ...thisMonth(), groupBy: 'department' };
    const rows = (await manager.call('getUsage', { query })).body.rows;
    expect(rows.map((row: { groupId: string }) => row.groupId)).toEqual([world.content]);
    const all = (await owner.call('getUsage', { query })).body.rows;
    expect(all.map((row: { groupId: string }) => row.groupId).sort()).toEqual(
      [world.content, world.marketing].sort(),
    );
  });

  it('keeps the name of what was deleted since, with a mark', async () => {
    const { id } = world.keys.member;
    await owner.call('patchKey', { id, version: 1, body: { status: 'disabled' } });
    expect((await owner.call('deleteKey', { id, version: 2 })).status).toBe(204);
    const rows = (await owner.call('getUsage', { query: { ...thisMonth(), groupBy: 'key' } })).body
      .rows;
    expect(rows).toMatchObject([{ groupId: id, groupName: 'laptop', deleted: true, cost }]);
    const filtered = await owner.call('getUsage', { query: { ...thisMonth(), keyId: id } });
    expect(filtered.body.totals.cost).toBe(cost);
    const books = (await finance.call('getReconciliation')).body;
    expect(books.balanced).toBe(true);
  });

  it.each([
    [{ from: '2026-11-02', to: '2026-11-02' }, 'to'],
    [{ from: '2026-11-02', to: '2026-11-01' }, 'to'],
    [{ from: '2000-01-01', to: '2026-11-01' }, 'to'],
    [{ from: '2026-02-30', to: '2026-11-01' }, 'from'],
    [{ from: '2026-11-01', to: '2026-12-01', groupBy: 'planet' }, 'groupBy'],
    [{ from: '2026-11-01', to: '2026-12-01', extra: '1' }, ''],
  ])('refuses the range or grouping %o by field', async (query, field) => {
    const answer = await owner.call('getUsage', {
      query: query as unknown as Record<string, string>,
    });
    expect(answer.status).toBe(422);
    expect(answer.body.error.details.fields[0].path).toBe(field);
  });
});

describe("the gateways' own route", () => {
  const ask = async (secret: string | null) => {
    const headers = secret === null ? {} : { authorization: `Bearer ${secret}` };
    const response = await test.app.inject({ url: '/internal/v1/key-usage', headers });
    return { status: response.statusCode, body: JSON.parse(response.payload) };
  };

  it("answers a tenant's own usage of the month, by model", async () => {
    const event = await settleOne(await admitOne(world.keys.engineer.secret));
    const value = new TextEncoder().encode(JSON.stringify(event));
    await new UsageLedger(db.pool).bookSlice({
      topic: 'outbox',
      partition: shard,
      records: [{ offset: 2n, key: null, value }],
      order: 'unfenced',
    });
    const { status, body } = await ask(world.keys.engineer.secret);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      object: 'usage',
      key: { id: world.keys.engineer.id },
      period: today().toFormat('yyyy-MM'),
      models: [{ model: 'small', requests: '1', tokens: '1200', cost }],
      totals: { requests: '1', cost },
    });
  });

  it("is in the reports of those who may see it, and in nobody else's", async () => {
    const requestsSeenBy = async (client: TestClient) =>
      (await client.call('getUsage', { query: thisMonth() })).body.totals.requests;
    expect(await requestsSeenBy(owner)).toBe('2');
    expect(await requestsSeenBy(finance)).toBe('2');
    // The second call was made in another department, by another user.
    expect(await requestsSeenBy(manager)).toBe('1');
    expect(await requestsSeenBy(member)).toBe('1');
  });

  it('wants a key that works', async () => {
    for (const secret of [null, 'weir_sk_nonsense', world.keys.member.secret]) {
      const { status, body } = await ask(secret);
      expect(status).toBe(401);
      expect(body.error.code).toBe('invalid_api_key');
    }
  });
});
