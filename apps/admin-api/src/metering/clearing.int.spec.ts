import { apiSchemas, newId, shardOf } from '@weir/domain';
import {
  listDeadLetters,
  openDatabase,
  recordReconciliation,
  UsageLedger,
  type Database,
} from '@weir/persistence';
import {
  createTestDatabase,
  numbered,
  openTestRedis,
  testTenant,
  usageEvent,
  type TestDatabase,
  type TestRedis,
  type UsageEventOverrides,
} from '@weir/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp, type TestClient } from '../testing/test-app.js';
import { makeTestWorld, signInAll, type TestWorld } from '../testing/test-world.js';

/* What a person does about books that do not add up. */

const at = Date.UTC(2026, 10, 20, 0, 30);
const bucket = { from: Date.UTC(2026, 10, 20) / 1_000, to: Date.UTC(2026, 10, 20, 1) / 1_000 };

let database: TestDatabase;
let redis: TestRedis;
let db: Database;
let test: TestApp;
let world: TestWorld;
let owner: TestClient;
let finance: TestClient;
let offset = 0n;

beforeAll(async () => {
  database = await createTestDatabase();
  redis = openTestRedis();
  db = openDatabase({ url: database.url, poolMax: 4 });
  test = await startTestApp({
    databaseUrl: database.url,
    redisUrl: redis.url,
    redisPrefix: redis.prefix,
  });
  world = await makeTestWorld(test.app, 'acme');
  ({ owner, finance } = await signInAll(test, world));
});
afterAll(async () => {
  await test?.close();
  await db?.close();
  await redis?.close();
  await database?.drop();
});

const shard = () => shardOf(world.enterpriseId, test.config.SHARD_COUNT);
const eventOf = (enterpriseId: string, overrides: UsageEventOverrides = {}) =>
  usageEvent(testTenant({ enterprise: { id: enterpriseId, name: 'x' } }), at, overrides);
const book = (values: readonly (string | Uint8Array)[]) =>
  new UsageLedger(db.pool).bookSlice({
    topic: 'test',
    partition: 0,
    records: values.map((value) => ({
      offset: (offset += 1n),
      key: null,
      value: Buffer.from(value),
    })),
    order: 'unfenced',
  });
const auditOf = async (targetId: string) =>
  (await owner.call('listAudit', { query: { targetId } })).body.items;
const csv = (rows: readonly (string | number)[][]) =>
  ['start_time,end_time,model,num_model_requests,input_tokens,output_tokens', ...rows, '']
    .map(String)
    .join('\n');

describe("a provider's own usage file", () => {
  it('is imported once, matched both ways, and noted in the audit log', async () => {
    const provider = { id: world.upstream, name: 'Provider' };
    const events = [
      eventOf(world.enterpriseId, { provider, modelServed: 'same' }),
      eventOf(world.enterpriseId, { provider, modelServed: 'ours' }),
      eventOf(world.enterpriseId, { provider, modelServed: 'less' }),
    ].map((event, index) => numbered(event, index + 1, { shard: shard(), epoch: newId() }));
    const booked = await book(events.map((event) => JSON.stringify(event)));
    expect(booked).toMatchObject({ booked: 3, deadLetters: 0 });
    const body = {
      upstreamId: world.upstream,
      dialect: 'openai',
      fileName: 'november.csv',
      content: csv([
        [bucket.from, bucket.to, 'same', 1, 1_000, 200],
        [bucket.from, bucket.to, 'less', 1, 1_001, 200],
        [bucket.from, bucket.to, 'theirs', 1, 7, 8],
      ]),
    };
    const first = await finance.call('importProviderFile', { body });
    expect(first.status, first.text).toBe(201);
    expect(first.body).toMatchObject({ fileName: 'november.csv', lines: 3 });
    const again = await finance.call('importProviderFile', { body });
    expect(again.body).toEqual(first.body);
    const files = (await finance.call('listProviderFiles')).body;
    expect(files).toEqual({ items: [first.body], nextCursor: null });

    const { id } = first.body;
    const report = (await finance.call('matchProviderFile', { id })).body;
    expect(report).toMatchObject({
      matched: 1,
      differing: [
        { model: 'less', theirs: { inputTokens: '1001' }, ours: { inputTokens: '1000' } },
      ],
      onlyTheirs: [{ model: 'theirs', theirs: { inputTokens: '7', outputTokens: '8' } }],
      onlyOurs: [{ model: 'ours', ours: { inputTokens: '1000', outputTokens: '200' } }],
      truncated: false,
    });
    expect(await auditOf(id)).toMatchObject([
      { action: 'provider-file.imported', actorName: 'The finance' },
      { action: 'provider-file.imported', actorName: 'The finance' },
    ]);
  });

  it('is refused with what is wrong with it, and nothing of it is kept', async () => {
    const before = (await finance.call('listProviderFiles')).body;
    const answer = await finance.call('importProviderFile', {
      body: { upstreamId: world.upstream, dialect: 'openai', fileName: 'x', content: '{"a":1}' },
    });
    expect(answer.status).toBe(400);
    expect(answer.body.error.details.faults[0]).toContain('start_time');
    expect((await finance.call('listProviderFiles')).body).toEqual(before);
  });

  it('may be larger than any other body, up to its own limit', async () => {
    const body = (length: number) => ({
      upstreamId: world.upstream,
      dialect: 'openai',
      fileName: 'large.csv',
      content: csv([[bucket.from, bucket.to, 'x'.repeat(length), 1, 1, 1]]),
    });
    const large = await finance.call('importProviderFile', { body: body(4_900_000) });
    expect(large.status, large.text.slice(0, 500)).toBe(201);
    const tooLarge = await finance.call('importProviderFile', { body: body(5_000_000) });
    expect(tooLarge.status).toBe(422);
    const flood = await finance.call('importProviderFile', { body: body(13_000_000) });
    expect(flood.status).toBe(413);
    const other = await owner.call('createDepartment', { body: { name: 'x'.repeat(300_000) } });
    expect(other.status).toBe(413);
  });
});

describe('dead letters', () => {
  it("shows the owner the enterprise's own, and never what may be another's", async () => {
    const own = { ...eventOf(world.enterpriseId), spoilt: 'ours' };
    const foreign = { ...eventOf(newId()), spoilt: 'theirs' };
    await book([
      JSON.stringify(own),
      JSON.stringify(foreign),
      JSON.stringify(own).slice(0, -1),
      Buffer.from([0xff, 0xfe]),
      JSON.stringify([own]),
    ]);
    expect(await listDeadLetters(db.pool, { limit: 10 })).toHaveLength(5);
    const answer = await owner.call('listDeadLetters');
    expect(answer.body.items).toMatchObject([{ value: JSON.stringify(own), replayedAt: null }]);
    expect(answer.body.nextCursor).toBeNull();
    expect(answer.text).not.toContain('theirs');
  });

  it('gives them page by page, whatever lies between', async () => {
    await book([
      JSON.stringify({ ...eventOf(newId()), spoilt: 1 }),
      JSON.stringify({ ...eventOf(world.enterpriseId), spoilt: 1 }),
    ]);
    const first = (await owner.call('listDeadLetters', { query: { limit: '1' } })).body;
    expect(first.items).toHaveLength(1);
    const query = { limit: '10', cursor: first.nextCursor };
    const second = (await owner.call('listDeadLetters', { query })).body;
    expect(second.items).toHaveLength(1);
    expect(second.items[0].id).not.toBe(first.items[0].id);
  });

  it('books one once it can be booked, and says so in the audit log', async () => {
    const event = numbered(eventOf(world.enterpriseId), 1, { shard: shard(), epoch: newId() });
    const [letter] = (await owner.call('listDeadLetters')).body.items;
    expect((await owner.call('replayDeadLetter', { id: letter.id })).body).toEqual({
      booked: false,
    });
    await db.prisma.deadLetter.update({
      where: { id: letter.id },
      data: { value: Buffer.from(JSON.stringify(event)) },
    });
    for (const round of ['first', 'second']) {
      const answer = await owner.call('replayDeadLetter', { id: letter.id });
      expect(answer.body, round).toEqual({ booked: true });
    }
    const { rows } = await db.pool.query(
      'select count(*)::int as n from usage_event where event_id = $1',
      [event.id],
    );
    expect(rows).toEqual([{ n: 1 }]);
    expect((await auditOf(letter.id)).map((entry: { after: unknown }) => entry.after)).toEqual([
      { booked: true },
      { booked: true },
      { booked: false },
    ]);
  });
});

describe('a hole', () => {
  const makeHole = async () => {
    const epoch = newId();
    const events = [1, 3].map((seq) =>
      numbered(eventOf(world.enterpriseId), seq, { shard: shard(), epoch }),
    );
    await book(events.map((event) => JSON.stringify(event)));
    return { shard: shard(), epoch, fromSeq: 2, toSeq: 2, reason: 'the disk burnt' };
  };
  const holesOf = async (epoch: string) =>
    (await owner.call('getMeteringStatus')).body.holes.filter(
      (hole: { epoch: string }) => hole.epoch === epoch,
    );

  it('is accepted by the owner, with the reason in the audit log', async () => {
    const body = await makeHole();
    expect(await holesOf(body.epoch)).toHaveLength(1);
    expect((await owner.call('acceptHole', { body })).status).toBe(204);
    expect(await holesOf(body.epoch)).toEqual([]);
    expect((await owner.call('acceptHole', { body })).status).toBe(400);
    expect(await auditOf(`${body.shard}/${body.epoch}/2-2`)).toMatchObject([
      { action: 'hole.accepted', actorName: 'The owner', after: body },
    ]);
  });

  it('stays where another enterprise counts on the same shard', async () => {
    const body = await makeHole();
    let id = newId();
    while (shardOf(id, test.config.SHARD_COUNT) !== shard()) id = newId();
    const enterprise = await db.prisma.enterprise.findUniqueOrThrow({
      where: { id: world.enterpriseId },
    });
    const { settings, ...rest } = enterprise;
    await db.prisma.enterprise.create({
      data: { ...rest, id, name: 'Neighbour', settings: settings as object },
    });
    const answer = await owner.call('acceptHole', { body });
    expect(answer.status, answer.text).toBe(409);
    expect(await holesOf(body.epoch)).toHaveLength(1);
  });
});

it("lists the worker's comparisons, the enterprise's own, newest first", async () => {
  const counter = { requests: 1n, inputTokens: -2n, outputTokens: 3n, costNano: -1_500_000_000n };
  const drifts = [
    { scopeId: world.enterpriseId, level: 'enterprise', counter, rollup: counter },
  ] as const;
  const run = (enterpriseId: string, periodId: string, atMs: number) =>
    recordReconciliation(db.pool, {
      enterpriseId,
      periodId,
      scopes: 4,
      drifts,
      settled: true,
      atMs,
    });
  await run(world.enterpriseId, '2026-10', at);
  await run(newId(), '2026-11', at + 1);
  await run(world.enterpriseId, '2026-11', at + 2);
  const answer = (await finance.call('listReconcileRuns')).body;
  const items = apiSchemas.reconcileRunSchema.array().parse(answer.items);
  expect(items.map(({ periodId }) => periodId)).toEqual(['2026-11', '2026-10']);
  expect(items[0]).toMatchObject({
    drifted: 1,
    settled: true,
    drifts: [
      {
        scopeId: world.enterpriseId,
        counter: { requests: '1', inputTokens: '-2', outputTokens: '3', cost: '-1.50' },
      },
    ],
  });
});
