import { newId, periodAt, shardOf, type UsageEvent } from '@weir/domain';
import {
  createTestDatabase,
  manualClock,
  numbered,
  type TestDatabase,
  type TestTenant,
  testTenant,
  usageEvent,
} from '@weir/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../database.js';
import { bookRefusals } from '../ledger/refusals.js';
import { watchHoles } from '../ledger/hole-watch.js';
import { UsageLedger } from '../ledger/usage-ledger.js';
import { meteringStatus, noteSources } from './metering-status.js';
import { findDrift, reconcile, recordReconciliation } from './reconcile.js';
import { loadScopeCounters } from './scope-sums.js';
import { findRequest, usageSummary, type UsageSummaryQuery } from './usage-queries.js';
import { withUsageRows } from './usage-rows.js';

const zone = 'Asia/Shanghai';
const nowMs = Date.parse('2026-11-29T10:00:00Z');
const hourMs = 3_600_000;

let testDatabase: TestDatabase;
let database: Database;
let ledger: UsageLedger;
let enterprise: { id: string; name: string };
let seq = 0;
const clock = manualClock(nowMs);

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase({ url: testDatabase.url, poolMax: 8 });
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});
beforeEach(async () => {
  clock.set(nowMs);
  ledger = new UsageLedger(database.pool, { clock });
  enterprise = { id: newId(), name: 'Acme' };
  await database.prisma.enterprise.create({
    data: { ...enterprise, timeZone: zone, currency: 'USD', settings: {} },
  });
});

const book = (events: readonly UsageEvent[]) =>
  ledger.bookSlice({
    topic: 'test',
    partition: 0,
    order: 'unfenced',
    records: events.map((event, index) => ({
      offset: BigInt(index),
      key: null,
      value: Buffer.from(JSON.stringify(event)),
    })),
  });

const next = (...args: Parameters<typeof usageEvent>): UsageEvent =>
  numbered(usageEvent(...args), (seq += 1));

const named = (name: string) => ({ id: newId(), name });

/** Engineering ⊃ Platform, and Sales; one user and key each. */
function company() {
  const engineering = named('Engineering');
  const platform = named('Platform');
  const sales = named('Sales');
  const tenant = (departments: TestTenant['departments'], name: string) =>
    testTenant({
      enterprise,
      departments,
      user: named(name),
      key: named(`${name}-key`),
      timeZone: zone,
    });
  return {
    engineering,
    platform,
    sales,
    inEngineering: tenant([engineering], 'Ada'),
    inPlatform: tenant([engineering, platform], 'Bo'),
    inSales: tenant([sales], 'Cy'),
  };
}

const query = (overrides: Partial<UsageSummaryQuery> = {}): UsageSummaryQuery => ({
  enterpriseId: enterprise.id,
  // November in Shanghai.
  from: new Date('2026-10-31T16:00:00Z'),
  to: new Date('2026-11-30T16:00:00Z'),
  timeZone: zone,
  groupBy: 'none',
  granularity: 'none',
  filters: {},
  ...overrides,
});

describe('usage by department', () => {
  it('holds in a parent what was used in itself and below it, and counts each event once in the totals', async () => {
    const { engineering, platform, sales, ...tenants } = company();
    await book([
      next(tenants.inEngineering, nowMs),
      next(tenants.inPlatform, nowMs),
      next(tenants.inPlatform, nowMs - hourMs),
      next(tenants.inSales, nowMs),
    ]);
    const { rows, totals } = await usageSummary(database.pool, query({ groupBy: 'department' }));
    const requests = new Map(rows.map(({ groupId, figures }) => [groupId, figures.requests]));
    expect(requests).toEqual(
      new Map([
        [engineering.id, 3n],
        [platform.id, 2n],
        [sales.id, 1n],
      ]),
    );
    expect(rows.find(({ groupId }) => groupId === platform.id)).toMatchObject({
      groupName: 'Platform',
      groupPath: [engineering.id, platform.id],
    });
    expect(totals).toMatchObject({
      requests: 4n,
      inputTokens: 4_000n,
      outputTokens: 800n,
      tokens: 4_800n,
      costPico: 18_000_000_000n,
      costNano: 18_000_000n,
    });
  });

  it('keeps the spend of a department that moved under the parent that it had at the time', async () => {
    const { engineering, platform, sales, inPlatform } = company();
    await book([
      next(inPlatform, nowMs - hourMs),
      next({ ...inPlatform, departments: [sales, platform] }, nowMs),
    ]);
    const { rows } = await usageSummary(database.pool, query({ groupBy: 'department' }));
    expect(new Map(rows.map(({ groupId, figures }) => [groupId, figures.requests]))).toEqual(
      new Map([
        [engineering.id, 1n],
        [sales.id, 1n],
        [platform.id, 2n],
      ]),
    );
  });
});

describe('every breakdown', () => {
  it('sums to the same total, from quarters as from days, filtered as a whole', async () => {
    const { engineering, ...tenants } = company();
    const everyone = [tenants.inEngineering, tenants.inPlatform, tenants.inSales];
    const events = Array.from({ length: 60 }, (_, index) => {
      const tenant = everyone[index % 3];
      if (!tenant) throw new Error('a tenant');
      return next(tenant, nowMs - index * 7 * hourMs, {
        modelAsked: index % 2 === 0 ? 'demo-large' : 'demo-small',
        status: index % 10 === 0 ? 'error' : 'ok',
        usage: { input: index, cachedInput: 3, output: index * 2, reasoning: 1 },
      });
    });
    await book(events);
    for (const filters of [
      {},
      { departmentId: engineering.id },
      { model: 'demo-small' },
      { userId: tenants.inSales.user.id },
    ]) {
      const [whole] = await Promise.all([usageSummary(database.pool, query({ filters }))]);
      // A range that does not begin at midnight is answered from quarters.
      const shifted = await usageSummary(
        database.pool,
        query({ filters, from: new Date('2026-10-31T16:15:00Z') }),
      );
      expect(shifted.totals).toEqual(whole.totals);
      for (const groupBy of ['user', 'key', 'model', 'provider'] as const) {
        for (const granularity of ['none', 'hour', 'day', 'month'] as const) {
          const { rows, totals } = await usageSummary(
            database.pool,
            query({ filters, groupBy, granularity }),
          );
          expect(totals).toEqual(whole.totals);
          for (const figure of ['requests', 'tokens', 'costPico', 'costNano', 'failed'] as const) {
            const sum = rows.reduce((total, { figures }) => total + figures[figure], 0n);
            expect(sum).toBe(whole.totals[figure]);
          }
        }
      }
    }
  });

  it.each(['Pacific/Pago_Pago', 'America/St_Johns', 'UTC', 'Asia/Kathmandu', 'Pacific/Kiritimati'])(
    'has days that sum to the month in %s, whatever zone the daily roll-ups are cut in',
    async (timeZone) => {
      const { inSales } = company();
      const month = periodAt('month', nowMs, timeZone);
      clock.set(Date.parse('2026-12-03T00:00:00Z'));
      const edges = [
        month.startsAt - 1,
        month.startsAt,
        month.startsAt + 14.5 * 24 * hourMs,
        (month.endsAt ?? 0) - 1,
        month.endsAt ?? 0,
      ];
      await book(edges.map((atMs) => next(inSales, atMs)));
      const { rows, totals } = await usageSummary(
        database.pool,
        query({
          timeZone,
          from: new Date(month.startsAt),
          to: new Date(month.endsAt ?? 0),
          granularity: 'day',
        }),
      );
      expect(totals.requests).toBe(3n);
      expect(rows.map(({ period }) => period)).toEqual(['2026-11-01', '2026-11-15', '2026-11-30']);
      const months = await usageSummary(
        database.pool,
        query({
          timeZone,
          from: new Date(periodAt('month', month.startsAt - 1, timeZone).startsAt),
          to: new Date(periodAt('month', month.endsAt ?? 0, timeZone).endsAt ?? 0),
          granularity: 'month',
        }),
      );
      expect(months.rows.map(({ period, figures }) => [period, figures.requests])).toEqual([
        ['2026-10', 1n],
        ['2026-11', 3n],
        ['2026-12', 1n],
      ]);
    },
  );

  it('counts to the quarter of an hour where a range does not begin and end at midnight', async () => {
    const { inSales } = company();
    const midnight = Date.parse('2026-11-10T00:00:00+08:00');
    const minutes = [-1, 0, 14, 15, 29, 30, 24 * 60 - 1];
    await book(minutes.map((minute) => next(inSales, midnight + minute * 60_000)));
    const between = async (from: number, to: number) => {
      const range = {
        from: new Date(midnight + from * 60_000),
        to: new Date(midnight + to * 60_000),
      };
      return (await usageSummary(database.pool, query(range))).totals.requests;
    };
    expect(await between(0, 24 * 60)).toBe(6n);
    expect(await between(15, 24 * 60)).toBe(4n);
    expect(await between(0, 30)).toBe(4n);
    expect(await between(15, 30)).toBe(2n);
  });

  it('shows failed attempts and repeated ones apart from calls', async () => {
    const { inSales } = company();
    await book([
      next(inSales, nowMs, {
        requestId: 'r1',
        attempt: 1,
        status: 'error',
        usage: { input: 0, output: 0 },
      }),
      next(inSales, nowMs, { requestId: 'r1', attempt: 2 }),
      next(inSales, nowMs, { estimated: true, status: 'expired' }),
    ]);
    const { totals } = await usageSummary(database.pool, query());
    expect(totals).toMatchObject({ requests: 3n, calls: 2n, failed: 1n, estimated: 1n });
  });
});

describe('looking up a call', () => {
  it('finds its attempts and refusals by request id, and an attempt by its event id, within the enterprise alone', async () => {
    const { inSales } = company();
    const first = next(inSales, nowMs, { requestId: 'r-7', attempt: 1, status: 'error' });
    const second = next(inSales, nowMs + 5, { requestId: 'r-7', attempt: 2 });
    await book([first, second]);
    const refusal = {
      id: newId(nowMs),
      at: new Date(nowMs).toISOString(),
      requestId: 'r-7',
      enterprise,
      departments: [...inSales.departments],
      user: inSales.user,
      key: inSales.key,
      model: 'demo-large',
      route: '/v1/chat/completions',
      outcome: 'refused',
      code: 'insufficient_quota',
      scope: { level: 'department', id: inSales.departments[0]?.id, name: 'Sales' },
      metric: 'cost',
      window: 'month',
      retryAfterMs: null,
    };
    const record = { offset: 1n, key: null, value: Buffer.from(JSON.stringify(refusal)) };
    const poison = { offset: 2n, key: null, value: Buffer.from('{}') };
    const source = { topic: 'refusals', partition: 0, records: [record, poison, record] };
    expect(await bookRefusals(database.pool, source, nowMs)).toEqual({ booked: 1, deadLetters: 1 });
    expect(await bookRefusals(database.pool, source, nowMs)).toMatchObject({ booked: 0 });

    const found = await findRequest(database.pool, enterprise.id, 'r-7');
    expect(found.attempts.map(({ eventId }) => eventId)).toEqual([first.id, second.id]);
    expect(found.attempts[1]).toMatchObject({ inputTokens: 1_000n, costPico: 4_500_000_000n });
    expect(found.refusals).toEqual([
      expect.objectContaining({ code: 'insufficient_quota', scopeName: 'Sales' }),
    ]);
    expect((await findRequest(database.pool, enterprise.id, second.id)).attempts).toHaveLength(1);
    expect(await findRequest(database.pool, newId(), 'r-7')).toEqual({
      attempts: [],
      refusals: [],
    });
  });
});

describe('rows for an export', () => {
  it('come in order of reservation and id, each once, from one snapshot, whatever is booked meanwhile', async () => {
    const { inSales } = company();
    const events = Array.from({ length: 25 }, (_, index) =>
      next(inSales, nowMs - (index % 5) * 60_000),
    );
    await book(events);
    const range = { enterpriseId: enterprise.id, from: query().from, to: query().to, filters: {} };
    const seen = await withUsageRows(database.pool, range, async ({ count, batches }) => {
      const rows: { at: number; id: string; costPico: bigint }[] = [];
      for await (const batch of batches(4)) {
        if (rows.length === 0) await book([next(inSales, nowMs - 90_000)]);
        rows.push(
          ...batch.map(({ reservedAt, eventId, costPico }) => ({
            at: reservedAt.getTime(),
            id: eventId,
            costPico,
          })),
        );
      }
      expect(count).toBe(25n);
      return rows;
    });
    const expected = events
      .map(({ id, data }) => ({ at: Date.parse(data.reservedAt), id, costPico: 4_500_000_000n }))
      .sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1));
    expect(seen).toEqual(expected);
  });
});

describe('counters for a new epoch', () => {
  it('hold the current day, week, month and all time per scope and model, in the zone of the enterprise', async () => {
    const { engineering, platform, inPlatform } = company();
    const shanghai = (text: string) => Date.parse(`${text}+08:00`);
    await book([
      next(inPlatform, shanghai('2026-11-29T00:00:00')),
      next(inPlatform, shanghai('2026-11-28T23:59:59.999'), { modelAsked: 'demo-small' }),
      next(inPlatform, shanghai('2026-11-01T00:00:00')),
      next(inPlatform, shanghai('2026-10-31T23:59:59.999')),
    ]);
    // They come from the roll-ups: of the rows there may be tens of millions, and retention drops the old ones.
    await database.pool.query('delete from usage_event where enterprise_id = $1', [enterprise.id]);
    const shard = shardOf(enterprise.id, 8);
    const seeds = new Map<string, bigint>();
    const at = shanghai('2026-11-29T12:00:00');
    for await (const seed of loadScopeCounters(database.pool, shard, 8, at)) {
      const key = `${seed.scopeId}|${seed.window}|${seed.periodId}|${seed.model ?? '*'}`;
      expect(seeds.has(key)).toBe(false);
      seeds.set(key, seed.requests);
    }
    const scopes = [
      enterprise.id,
      engineering.id,
      platform.id,
      inPlatform.user.id,
      inPlatform.key.id,
    ];
    for (const scope of scopes) {
      const of = (window: string, period: string, model = '*') =>
        seeds.get(`${scope}|${window}|${period}|${model}`);
      expect(of('day', '2026-11-29')).toBe(1n);
      expect(of('day', '2026-11-29', 'demo-small')).toBeUndefined();
      // A week begins on Monday, the 23rd.
      expect(of('week', '2026-W48')).toBe(2n);
      expect(of('month', '2026-11')).toBe(3n);
      expect(of('month', '2026-11', 'demo-small')).toBe(1n);
      expect(of('total', 'total')).toBe(4n);
    }
    const others = loadScopeCounters(database.pool, (shard + 1) % 8, 8, at);
    for await (const seed of others) expect(scopes).not.toContain(seed.scopeId);
  });
});

describe('reconciliation', () => {
  it('finds no drift when counters, rows and roll-ups agree, and names the scope and the figures when not', async () => {
    const { inSales } = company();
    await book([next(inSales, nowMs), next(inSales, nowMs - hourMs)]);
    const booked = await reconcile(database.pool, enterprise.id, '2026-11');
    expect(booked.map(({ level }) => level).sort()).toEqual([
      'department',
      'enterprise',
      'key',
      'user',
    ]);
    const counters = new Map(booked.map(({ scopeId, ledger: figures }) => [scopeId, figures]));
    expect(findDrift(booked, counters)).toEqual([]);

    counters.set(inSales.user.id, {
      ...booked[0]!.ledger,
      costNano: booked[0]!.ledger.costNano + 5n,
    });
    const drifts = findDrift(booked, counters);
    expect(drifts).toEqual([
      expect.objectContaining({
        scopeId: inSales.user.id,
        counter: { requests: 0n, inputTokens: 0n, outputTokens: 0n, costNano: 5n },
      }),
    ]);
    const run = { enterpriseId: enterprise.id, periodId: '2026-11', scopes: 4, atMs: nowMs };
    const isAlarmed = async () =>
      (await meteringStatus(database.pool)).alarms.some(
        ({ kind, subject }) => kind === 'reconcile-drift' && subject.startsWith(enterprise.id),
      );
    await recordReconciliation(database.pool, { ...run, drifts, settled: false });
    expect(await isAlarmed()).toBe(false);
    await recordReconciliation(database.pool, { ...run, drifts, settled: true });
    expect(await isAlarmed()).toBe(true);
    await recordReconciliation(database.pool, { ...run, drifts: [], settled: true });
    expect(await isAlarmed()).toBe(false);
  });

  it.each(['usage_rollup', 'usage_rollup_day', 'usage_rollup_month'])(
    'finds a %s that differs from the rows',
    async (table) => {
      const { inSales } = company();
      await book([next(inSales, nowMs)]);
      await database.pool.query(
        `update ${table} set requests = requests + 1 where enterprise_id = $1`,
        [enterprise.id],
      );
      const booked = await reconcile(database.pool, enterprise.id, '2026-11');
      const counters = new Map(booked.map(({ scopeId, ledger: figures }) => [scopeId, figures]));
      expect(findDrift(booked, counters).map(({ rollup }) => rollup.requests)).toEqual([
        1n,
        1n,
        1n,
        1n,
      ]);
    },
  );
});

describe('the metering status', () => {
  const shard = 77;
  const status = () => meteringStatus(database.pool, { shard });
  const arrive = (epoch: string, numbers: number[]) => {
    const { inSales } = company();
    return book(
      numbers.map((n) => numbered(usageEvent(inSales, nowMs + n * 1_000), n, { shard, epoch })),
    );
  };
  const endedAt = (n: number) => new Date(nowMs + n * 1_000 + 900);

  it('is complete up to the last call before a hole, names the hole, alarms it after its grace, and clears it', async () => {
    expect(await status()).toMatchObject({ completeUpTo: null, holes: [], lagEvents: 0n });
    const epoch = newId();
    await arrive(epoch, [1, 2, 3]);
    expect((await status()).completeUpTo).toEqual(endedAt(3));
    await arrive(epoch, [6, 7]);
    expect(await status()).toMatchObject({
      completeUpTo: endedAt(3),
      holes: [{ shard, epoch, fromSeq: 4, toSeq: 5 }],
    });
    const alarmed = async () =>
      (await status()).alarms.filter(({ subject }) => subject === `${shard}/${epoch}`);
    await watchHoles(database.pool, nowMs + 59_000, 60_000);
    expect(await alarmed()).toEqual([]);
    await watchHoles(database.pool, nowMs + 60_000, 60_000);
    expect(await alarmed()).toEqual([
      expect.objectContaining({
        kind: 'sequence-hole',
        details: expect.objectContaining({ missing: [{ from: 4, to: 5 }] }),
      }),
    ]);
    await arrive(epoch, [4, 5]);
    await watchHoles(database.pool, nowMs + 61_000, 60_000);
    expect(await alarmed()).toEqual([]);
    expect((await status()).holes).toEqual([]);
  });

  it('is complete up to now while nothing is under way, and says how much is when something is', async () => {
    const quiet = nowMs + 3 * hourMs;
    await noteSources(database.pool, [{ shard, entries: 0, oldestAtMs: null }], 0n, quiet);
    expect((await status()).completeUpTo).toEqual(new Date(quiet));
    await noteSources(
      database.pool,
      [{ shard, entries: 12, oldestAtMs: quiet + 5 }],
      30n,
      quiet + 10,
    );
    expect(await status()).toMatchObject({
      completeUpTo: new Date(quiet),
      lagEvents: 42n,
      checkedAt: new Date(quiet + 10),
    });
    // A worker that was slow to write must not turn time back.
    await noteSources(database.pool, [{ shard, entries: 0, oldestAtMs: null }], 0n, quiet + 1);
    expect((await status()).lagEvents).toBe(42n);
  });
});
