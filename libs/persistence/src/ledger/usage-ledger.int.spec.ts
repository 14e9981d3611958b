import { randomBytes } from 'node:crypto';
import { newId, type UsageEvent } from '@weir/domain';
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
import { acceptHole } from './accept-hole.js';
import { openAlarms } from './alarms.js';
import { findDeadLetters, listDeadLetters } from './dead-letters.js';
import { dropExpiredPartitions, ensurePartitionsAhead } from './partitions.js';
import { findHoles, readProgress } from './progress-tables.js';
import { type Slice, UsageLedger } from './usage-ledger.js';
import { changeUsageZone } from './usage-zones.js';

const nowMs = Date.parse('2026-11-29T10:00:00Z');
const dayMs = 86_400_000;

let testDatabase: TestDatabase;
let database: Database;
let ledger: UsageLedger;
let tenant: TestTenant;
/** A topic of its own per test: offsets begin at 0. */
let topic: string;
const clock = manualClock(nowMs);

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase({ url: testDatabase.url, poolMax: 8 });
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});
beforeEach(() => {
  clock.set(nowMs);
  ledger = new UsageLedger(database.pool, { clock });
  tenant = testTenant();
  topic = `usage-${newId()}`;
});

const encode = (event: UsageEvent) => Buffer.from(JSON.stringify(event));

function sliceOf(
  events: readonly (UsageEvent | Buffer)[],
  from = 0,
  extra: Partial<Slice> = {},
): Slice {
  return {
    topic,
    partition: 0,
    order: 'fenced',
    records: events.map((event, index) => ({
      offset: BigInt(from + index),
      key: Buffer.isBuffer(event) ? null : Buffer.from(event.id),
      value: Buffer.isBuffer(event) ? event : encode(event),
    })),
    ...extra,
  };
}

async function lettersOfTopic() {
  const letters = await listDeadLetters(database.pool, { limit: 1_000, onlyOpen: true });
  return letters.filter((letter) => letter.topic === topic);
}

/** `count` events, numbered from 1 in an epoch of their own. */
function someEvents(count: number, of: TestTenant = tenant, atMs = nowMs): UsageEvent[] {
  const epoch = newId();
  return Array.from({ length: count }, (_, index) =>
    numbered(usageEvent(of, atMs - index * 1_000), index + 1, { epoch }),
  );
}

async function books(of: TestTenant = tenant) {
  const { rows } = await database.pool.query<{
    rows: number;
    ids: number;
    pico: string;
    tokens: string;
  }>(
    `select count(*)::int as rows, count(distinct event_id)::int as ids, coalesce(sum(cost_pico), 0)::text as pico,
       coalesce(sum(input_tokens + output_tokens), 0)::text as tokens from usage_event where enterprise_id = $1`,
    [of.enterprise.id],
  );
  const sums = async (table: string) => {
    const result = await database.pool.query<{ requests: number; pico: string; tokens: string }>(
      `select coalesce(sum(requests), 0)::int as requests, coalesce(sum(cost_pico), 0)::text as pico,
         coalesce(sum(input_tokens + output_tokens), 0)::text as tokens from ${table} where enterprise_id = $1`,
      [of.enterprise.id],
    );
    return result.rows[0];
  };
  return {
    ...rows[0],
    quarters: await sums('usage_rollup'),
    days: await sums('usage_rollup_day'),
    months: await sums('usage_rollup_month'),
  };
}

const balanced = (count: number) => {
  // 1,000 × 2.5 + 200 × 10 millionths.
  const pico = (BigInt(count) * 4_500_000_000n).toString();
  const tokens = (count * 1_200).toString();
  const sums = { requests: count, pico, tokens };
  return { rows: count, ids: count, pico, tokens, quarters: sums, days: sums, months: sums };
};

describe('booking', () => {
  it('writes each event once, with roll-ups per quarter and day that agree to the last digit', async () => {
    const events = someEvents(40);
    expect(await ledger.bookSlice(sliceOf(events))).toEqual({
      outcome: 'booked',
      booked: 40,
      repeated: 0,
      conflicts: 0,
      deadLetters: 0,
    });
    expect(await books()).toEqual(balanced(40));
  });

  it('changes nothing when every record is delivered three times, shuffled, on other partitions', async () => {
    const events = someEvents(30);
    const thrice = [...events, ...events, ...events].sort((a, b) =>
      (a.id + a.data.costPico).localeCompare(b.id + b.data.costPico) % 2 === 0 ? -1 : 1,
    );
    await ledger.bookSlice(sliceOf(thrice.slice(0, 45)));
    await ledger.bookSlice({ ...sliceOf(thrice.slice(45)), partition: 1 });
    await ledger.bookSlice({ ...sliceOf(events), topic: `${topic}-b` });
    expect(await books()).toEqual(balanced(30));
  });

  it('counts the new events alone where a slice brings some that are in the books, and the next ones too', async () => {
    const events = someEvents(60);
    await ledger.bookSlice(sliceOf(events.slice(0, 20)));
    // Half of it again, as after a kill between our commit and the broker's, then new ones, then again.
    expect(await ledger.bookSlice(sliceOf(events.slice(10, 40), 10))).toMatchObject({
      booked: 20,
      repeated: 10,
    });
    expect(await ledger.bookSlice(sliceOf(events.slice(40, 50), 40))).toMatchObject({
      booked: 10,
      repeated: 0,
    });
    expect(await ledger.bookSlice(sliceOf(events.slice(30), 30))).toMatchObject({
      booked: 10,
      repeated: 20,
    });
    expect(await books()).toEqual(balanced(60));
  });

  it('writes the same row whether it is copied or inserted beside one that is there', async () => {
    const [first, copied, inserted] = someEvents(3);
    if (first === undefined || copied === undefined || inserted === undefined) throw new Error();
    const odd = {
      departments: [
        { id: newId(), name: 'Forschung "A", {B}\\' },
        { id: newId(), name: '研发部' },
      ],
      tags: { team: 'Zürich 🜁', 'a"b': '\\t' },
      firstTokenAt: null,
      costPico: '123456789012345678901234',
      costNano: '123456789012345678902',
      adjusts: first.id,
      attempt: 3,
    };
    const alike = (event: UsageEvent): UsageEvent => ({
      ...event,
      data: { ...event.data, ...odd },
    });
    await ledger.bookSlice(sliceOf([first, alike(copied)]));
    await ledger.bookSlice(sliceOf([first, alike(inserted)], 2));
    const { rows } = await database.pool.query<Record<string, unknown>>(
      'select e.*, e.xmin from usage_event e where enterprise_id = $1 and event_id = any($2)',
      [tenant.enterprise.id, [copied.id, inserted.id]],
    );
    expect(rows).toHaveLength(2);
    const own = ['event_id', 'seq', 'request_id', 'booked_at', 'xmin'];
    const of = (event: UsageEvent) => {
      const row = rows.find((each) => each['event_id'] === event.id) ?? {};
      const instants = ['minted_at', 'reserved_at', 'started_at', 'ended_at'].map((name) => [
        name,
        (row[name] as Date).getTime() - Date.parse(event.data.reservedAt),
      ]);
      return {
        ...Object.fromEntries(Object.entries(row).filter(([name]) => !own.includes(name))),
        ...Object.fromEntries(instants),
      };
    };
    expect(of(copied)).toEqual(of(inserted));
    expect(of(copied)).toMatchObject({
      department_names: ['Forschung "A", {B}\\', '研发部'],
      tags: odd.tags,
      cost_pico: odd.costPico,
      attempt: 3,
    });
  });

  it('books the same slice once when two workers that both hold the partition bring it at the same time', async () => {
    const events = someEvents(200);
    const other = new UsageLedger(database.pool, { clock });
    const results = await Promise.all([
      ledger.bookSlice(sliceOf(events)),
      other.bookSlice(sliceOf(events)),
      other.bookSlice({ ...sliceOf([...events].reverse()), partition: 1 }),
    ]);
    const booked = results.map((result) => (result.outcome === 'booked' ? result.booked : 0));
    expect(booked.reduce((a, b) => a + b)).toBe(200);
    expect(await books()).toEqual(balanced(200));
  });

  it('keeps two enterprises that send the same event id apart', async () => {
    const other = testTenant();
    const id = newId(nowMs);
    const epoch = newId();
    await ledger.bookSlice(
      sliceOf([
        numbered(usageEvent(tenant, nowMs, { id }), 1, { epoch }),
        numbered(usageEvent(other, nowMs, { id }), 2, { epoch }),
      ]),
    );
    expect(await books(tenant)).toEqual(balanced(1));
    expect(await books(other)).toEqual(balanced(1));
  });

  it('keeps the first of two events with one id and other content, and lists the second once', async () => {
    const epoch = newId();
    const id = newId(nowMs);
    const first = numbered(usageEvent(tenant, nowMs, { id }), 1, { epoch });
    const second = numbered(usageEvent(tenant, nowMs, { id, usage: { output: 999_999 } }), 2, {
      epoch,
    });
    await ledger.bookSlice(sliceOf([first]));
    for (const from of [1, 2]) {
      expect(await ledger.bookSlice(sliceOf([second], from))).toMatchObject({
        booked: 0,
        conflicts: 1,
      });
    }
    expect(await books()).toEqual(balanced(1));
    const { rows } = await database.pool.query(
      'select event_id, reason, second from ledger_conflict where enterprise_id = $1',
      [tenant.enterprise.id],
    );
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatchObject({ event_id: id, second: { id } });
    expect(rows[0].reason).toContain('output_tokens');
  });

  it('holds an event that was numbered again in the next epoch for the same one, and counts both numbers as arrived', async () => {
    const [first, second] = [newId(nowMs), newId(nowMs + 1)];
    const event = usageEvent(tenant, nowMs);
    await ledger.bookSlice(sliceOf([numbered(event, 1, { epoch: first })]));
    expect(
      await ledger.bookSlice(sliceOf([numbered(event, 1, { epoch: second })], 1)),
    ).toMatchObject({ booked: 0, repeated: 1, conflicts: 0 });
    expect(await books()).toEqual(balanced(1));
    const progress = await readProgress(database.pool);
    for (const epoch of [first, second]) {
      expect(progress).toContainEqual(expect.objectContaining({ epoch, watermarkSeq: 1 }));
    }
  });

  it('finds the conflict also when both events come in one slice', async () => {
    const epoch = newId();
    const id = newId(nowMs);
    const events = [
      numbered(usageEvent(tenant, nowMs, { id }), 1, { epoch }),
      numbered(usageEvent(tenant, nowMs, { id, usage: { output: 5 } }), 2, { epoch }),
      numbered(usageEvent(tenant, nowMs, { id }), 1, { epoch }),
    ];
    expect(await ledger.bookSlice(sliceOf(events))).toMatchObject({
      booked: 1,
      conflicts: 1,
      repeated: 1,
    });
    expect(await books()).toEqual(balanced(1));
  });

  it('counts logical calls apart from attempts', async () => {
    const epoch = newId();
    const requestId = 'req-1';
    await ledger.bookSlice(
      sliceOf([
        numbered(usageEvent(tenant, nowMs, { requestId, attempt: 1, status: 'error' }), 1, {
          epoch,
        }),
        numbered(usageEvent(tenant, nowMs, { requestId, attempt: 2 }), 2, { epoch }),
        numbered(usageEvent(tenant, nowMs), 3, { epoch }),
      ]),
    );
    const { rows } = await database.pool.query(
      'select sum(requests)::int as attempts, sum(requests - retries)::int as calls from usage_rollup where enterprise_id = $1',
      [tenant.enterprise.id],
    );
    expect(rows[0]).toEqual({ attempts: 3, calls: 2 });
  });

  it('keeps spend where it was incurred when a user moves to another department', async () => {
    const epoch = newId();
    const sales = { id: newId(), name: 'Sales' };
    await ledger.bookSlice(
      sliceOf([
        numbered(usageEvent(tenant, nowMs), 1, { epoch }),
        numbered(usageEvent(tenant, nowMs + 1, { departments: [sales] }), 2, { epoch }),
      ]),
    );
    const { rows } = await database.pool.query<{ department_ids: string[]; requests: number }>(
      `select p.department_ids, sum(r.requests)::int as requests from usage_rollup r
       join usage_series s on s.id = r.series_id join usage_path p on p.id = s.path_id
       where r.enterprise_id = $1 group by 1`,
      [tenant.enterprise.id],
    );
    expect(new Map(rows.map((row) => [row.department_ids[0], row.requests]))).toEqual(
      new Map([
        [tenant.departments[0]?.id, 1],
        [sales.id, 1],
      ]),
    );
  });

  it('names a thing as the newest event does, whatever the order of arrival', async () => {
    const epoch = newId();
    const renamed = { ...tenant.user, name: '李伟 "the new", {name}\\' };
    const events = [
      numbered(usageEvent(tenant, nowMs + 1_000, { user: renamed }), 1, { epoch }),
      numbered(usageEvent(tenant, nowMs), 2, { epoch }),
    ];
    await ledger.bookSlice(sliceOf(events.slice(0, 1)));
    await ledger.bookSlice(sliceOf(events.slice(1), 1));
    await new UsageLedger(database.pool, { clock }).bookSlice(sliceOf(events, 2));
    const { rows } = await database.pool.query(
      `select name from usage_dimension where enterprise_id = $1 and kind = 'user'`,
      [tenant.enterprise.id],
    );
    expect(rows).toEqual([{ name: renamed.name }]);
  });
});

describe('money', () => {
  it('sums amounts near the limits of a double without losing a unit', async () => {
    const epoch = newId();
    const huge = [10n ** 14n, 10n ** 15n, 2n ** 53n - 1n, 3n];
    const events = huge.map((tokens, index) =>
      numbered(
        usageEvent(tenant, nowMs, {
          usage: { input: Number(tokens), output: 0 },
          price: { id: newId(), picoPerToken: { input: '7' }, picoPerRequest: '1' },
        }),
        index + 1,
        { epoch },
      ),
    );
    await ledger.bookSlice(sliceOf(events));
    const tokens = huge.reduce((a, b) => a + b);
    const pico = (tokens * 7n + 4n).toString();
    const result = await books();
    expect(result).toMatchObject({ pico, tokens: tokens.toString() });
    expect(result.quarters).toMatchObject({ pico, tokens: tokens.toString() });
    expect(result.days).toMatchObject({ pico, tokens: tokens.toString() });
    expect(result.months).toMatchObject({ pico, tokens: tokens.toString() });
  });

  it('alarms when the cost does not follow from the tokens and the unit prices, and books what was charged', async () => {
    const epoch = newId();
    const price = { id: newId(), picoPerToken: { input: '1', output: '1' }, picoPerRequest: '0' };
    await ledger.bookSlice(
      sliceOf([numbered(usageEvent(tenant, nowMs, { price, costPico: '5000' }), 1, { epoch })]),
    );
    expect(await books()).toMatchObject({ rows: 1, pico: '5000' });
    const alarms = await openAlarms(database.pool, 1_000);
    expect(alarms).toContainEqual(
      expect.objectContaining({
        kind: 'cost-mismatch',
        subject: `${tenant.enterprise.id}/${price.id}`,
        details: expect.objectContaining({ count: 1, reason: '5000 pico, recomputed 1200' }),
      }),
    );
  });

  it('takes a negative cost from adjustments alone', async () => {
    const epoch = newId();
    const first = numbered(usageEvent(tenant, nowMs), 1, { epoch });
    const adjustment = numbered(
      usageEvent(tenant, nowMs, {
        kind: 'adjustment',
        adjusts: first.id,
        usage: { input: 0, output: 0 },
        costPico: '-1000000',
        costNano: '-1000',
      }),
      2,
      { epoch },
    );
    const negative = numbered(usageEvent(tenant, nowMs, { costPico: '-1000', costNano: '-1' }), 3, {
      epoch,
    });
    const result = await ledger.bookSlice(sliceOf([first, adjustment, negative]));
    expect(result).toMatchObject({ booked: 2, deadLetters: 1 });
    const { quarters } = await books();
    expect(quarters).toMatchObject({ requests: 1, pico: (4_500_000_000 - 1_000_000).toString() });
  });

  it('has the database refuse negative tokens and costs, should a fault of ours let them through', async () => {
    const [event] = someEvents(1);
    await ledger.bookSlice(sliceOf(event ? [event] : []));
    for (const change of [
      'input_tokens = -1',
      'cost_pico = -1',
      'cost_nano = -1',
      "kind = 'gift'",
    ]) {
      await expect(
        database.pool.query(`update usage_event set ${change} where enterprise_id = $1`, [
          tenant.enterprise.id,
        ]),
      ).rejects.toMatchObject({ code: '23514' });
    }
  });
});

describe('what cannot be booked', () => {
  const garbage: [string, Buffer][] = [
    ['no JSON', Buffer.from('{"specversion":')],
    ['no bytes at all', Buffer.alloc(0)],
    ['bytes that are no UTF-8', Buffer.from([0x7b, 0xff, 0xfe, 0x7d])],
    ['JSON that is no object', Buffer.from('42')],
    ['a null', Buffer.from('null')],
    ['an object of another kind', Buffer.from('{"hello":"world"}')],
  ];
  it.each(garbage)('dead-letters %s with its bytes, and books the rest', async (_name, poison) => {
    const [first, second] = someEvents(2);
    if (!first || !second) throw new Error('two events');
    const result = await ledger.bookSlice(sliceOf([first, poison, second]));
    expect(result).toMatchObject({ booked: 2, deadLetters: 1 });
    const letters = await lettersOfTopic();
    expect(letters).toHaveLength(1);
    expect(letters[0]).toMatchObject({ topic, partition: 0, offset: 1n, replayedAt: null });
    expect(Buffer.from(letters[0]?.value ?? []).equals(poison)).toBe(true);
    expect(letters[0]?.reason).not.toBe('');
  });

  it.each([
    [
      'a UUIDv4 as id',
      (event: UsageEvent) => ({ ...event, id: 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa' }),
    ],
    [
      'negative tokens',
      (event: UsageEvent) => ({
        ...event,
        data: { ...event.data, usage: { ...event.data.usage, input: -1 } },
      }),
    ],
    [
      'a fraction of a token',
      (event: UsageEvent) => ({
        ...event,
        data: { ...event.data, usage: { ...event.data.usage, input: 1.5 } },
      }),
    ],
    [
      'a cost that is no integer',
      (event: UsageEvent) => ({ ...event, data: { ...event.data, costPico: '1e9' } }),
    ],
    [
      'no position',
      ({ data: { position: _position, ...data }, ...event }: UsageEvent) => ({ ...event, data }),
    ],
    [
      'a request id that no index can hold',
      (event: UsageEvent) => ({
        ...event,
        data: { ...event.data, requestId: randomBytes(20_000).toString('hex') },
      }),
    ],
    [
      'a model name that no index can hold',
      (event: UsageEvent) => ({
        ...event,
        data: { ...event.data, modelAsked: randomBytes(20_000).toString('hex') },
      }),
    ],
    [
      'a NUL in a name',
      (event: UsageEvent) => ({
        ...event,
        data: { ...event.data, user: { ...event.data.user, name: 'a\0b' } },
      }),
    ],
    [
      'an attempt that the column cannot hold',
      (event: UsageEvent) => ({ ...event, data: { ...event.data, attempt: 100_000 } }),
    ],
    [
      'a shard that the column cannot hold',
      (event: UsageEvent) => ({
        ...event,
        data: { ...event.data, position: { ...event.data.position, shard: 70_000 } },
      }),
    ],
    [
      'a date that does not exist',
      (event: UsageEvent) => ({
        ...event,
        data: { ...event.data, endedAt: '2026-02-30T00:00:00Z' },
      }),
    ],
    [
      'an id of the far future',
      (event: UsageEvent) => ({ ...event, id: newId(nowMs + 30 * dayMs) }),
    ],
  ])('dead-letters an event with %s, and books its neighbours', async (_name, spoil) => {
    const events = someEvents(9);
    const [victim] = events;
    if (!victim) throw new Error('an event');
    const spoilt = Buffer.from(JSON.stringify(spoil(victim)));
    const result = await ledger.bookSlice(
      sliceOf([...events.slice(1, 5), spoilt, ...events.slice(5)]),
    );
    expect(result).toMatchObject({ booked: 8, deadLetters: 1 });
    expect(await books()).toEqual(balanced(8));
  });

  it('books a dead letter once its fault is mended, and marks it', async () => {
    const epoch = newId();
    const event = numbered(usageEvent(tenant, nowMs + 30 * dayMs), 1, { epoch });
    expect(await ledger.bookSlice(sliceOf([event]))).toMatchObject({ deadLetters: 1 });
    const [letter] = await lettersOfTopic();
    if (!letter) throw new Error('a dead letter');
    expect(await ledger.replayDeadLetters([letter.id])).toEqual({ replayed: 0, stillDead: 1 });
    clock.advance(30 * dayMs);
    expect(await ledger.replayDeadLetters([letter.id])).toEqual({ replayed: 1, stillDead: 0 });
    expect(await books()).toEqual(balanced(1));
    expect((await findDeadLetters(database.pool, [letter.id]))[0]?.replayedAt).toEqual(
      new Date(clock.now()),
    );
  });
});

describe('old events', () => {
  it.each([30, 40, 400])(
    'books an event of %i days ago, and replaying its topic changes nothing',
    async (days) => {
      const events = someEvents(5, tenant, nowMs - days * dayMs);
      await ledger.bookSlice(sliceOf(events));
      await new UsageLedger(database.pool, { clock }).bookSlice({
        ...sliceOf(events),
        order: 'unfenced',
      });
      expect(await books()).toEqual(balanced(5));
    },
  );

  it('does not book an event again whose month retention has dropped', async () => {
    const events = someEvents(5, tenant, Date.parse('2024-05-10T10:00:00Z'));
    await ledger.bookSlice(sliceOf(events));
    const dropped = await dropExpiredPartitions(database.pool, nowMs, 25);
    expect(dropped).toContain('usage_event_2024_05');
    // The ledger still believes in the partition; another one has never seen it.
    for (const [index, any] of [ledger, new UsageLedger(database.pool, { clock })].entries()) {
      expect(await any.bookSlice(sliceOf(events, 5 + index * 5))).toMatchObject({
        booked: 0,
        deadLetters: 5,
      });
    }
    expect((await books()).quarters).toEqual(balanced(5).quarters);
    const reasons = new Set((await lettersOfTopic()).map(({ reason }) => reason));
    expect(reasons).toEqual(new Set(['the month of the event has been dropped by retention']));
  });

  it('makes a missing partition once when several workers need it at the same time', async () => {
    const events = someEvents(40, tenant, Date.parse('2025-03-10T10:00:00Z'));
    await Promise.all(
      [0, 1, 2, 3].map((partition) =>
        new UsageLedger(database.pool, { clock }).bookSlice({
          ...sliceOf(events.slice(partition * 10, partition * 10 + 10)),
          partition,
        }),
      ),
    );
    expect(await books()).toEqual(balanced(40));
  });

  it('has the partitions ahead before the month turns', async () => {
    await ensurePartitionsAhead(database.pool, Date.parse('2031-12-31T23:00:00Z'), 2);
    const { rows } = await database.pool.query<{ name: string }>(
      `select relname as name from pg_class where relname like 'usage_event_203%' and relkind = 'r' order by 1`,
    );
    expect(rows.map(({ name }) => name)).toEqual([
      'usage_event_2031_12',
      'usage_event_2032_01',
      'usage_event_2032_02',
    ]);
  });
});

describe('offsets', () => {
  it('refuse a slice above the next offset, book it when told that the rest is gone, and alarm what is missing', async () => {
    const events = someEvents(20);
    await ledger.bookSlice(sliceOf(events.slice(0, 5)));
    const beyond = sliceOf(events.slice(10), 10);
    expect(await ledger.bookSlice(beyond)).toEqual({ outcome: 'gap', nextOffset: 5n });
    expect(await books()).toEqual(balanced(5));
    expect(await ledger.bookSlice({ ...beyond, acceptGap: true })).toMatchObject({ booked: 10 });
    const alarms = await openAlarms(database.pool, 1_000);
    expect(alarms).toContainEqual(
      expect.objectContaining({
        kind: 'offset-gap',
        subject: `${topic}/0/5`,
        details: { from: '5', to: '9', count: 1 },
      }),
    );
  });

  it('lose nothing when the topic was deleted and made again, so that its offsets begin anew', async () => {
    const events = someEvents(30);
    await ledger.bookSlice(sliceOf(events.slice(0, 20)));
    expect(await ledger.bookSlice(sliceOf(events.slice(20), 0))).toMatchObject({ booked: 10 });
    expect(await books()).toEqual(balanced(30));
    const alarms = await openAlarms(database.pool, 1_000);
    expect(alarms).toContainEqual(
      expect.objectContaining({ kind: 'offset-rewind', subject: `${topic}/0` }),
    );
    const { rows } = await database.pool.query<{ next: string }>(
      'select next_offset as next from ledger_offset where topic = $1',
      [topic],
    );
    expect(rows).toEqual([{ next: '10' }]);
  });
});

describe('completeness', () => {
  const progressOf = async (epoch: string) =>
    (await readProgress(database.pool)).find((line) => line.epoch === epoch);

  it('moves the watermark over what has arrived without a hole, and names what has not', async () => {
    const events = someEvents(2_500);
    const epoch = events[0]?.data.position.epoch ?? '';
    const without = (missing: number[]) =>
      events.filter((_, index) => !missing.includes(index + 1));
    await ledger.bookSlice(sliceOf(without([700, 701, 1_000, 2_100])));
    const line = await progressOf(epoch);
    expect(line).toMatchObject({
      watermarkSeq: 699,
      highestSeq: 2_500,
      holeSince: new Date(nowMs),
    });
    if (!line) throw new Error('progress');
    expect(await findHoles(database.pool, line, 10)).toEqual([
      { from: 700, to: 701 },
      { from: 1_000, to: 1_000 },
      { from: 2_100, to: 2_100 },
    ]);

    const late = [700, 701, 1_000].flatMap((seq) => events[seq - 1] ?? []);
    await ledger.bookSlice({ ...sliceOf(late), order: 'unfenced' });
    expect(await progressOf(epoch)).toMatchObject({ watermarkSeq: 2_099, highestSeq: 2_500 });
    const last = events[2_099];
    await ledger.bookSlice({ ...sliceOf(last ? [last] : []), order: 'unfenced' });
    expect(await progressOf(epoch)).toMatchObject({
      watermarkSeq: 2_500,
      highestSeq: 2_500,
      holeSince: null,
    });
    const { rows } = await database.pool.query(
      'select block from ledger_progress_block where epoch = $1',
      [epoch],
    );
    expect(rows).toEqual([{ block: '2' }]);
  });

  it('goes on beyond numbers that a person takes for lost, and books one of them that arrives later', async () => {
    const events = someEvents(10);
    const epoch = events[0]?.data.position.epoch ?? '';
    await ledger.bookSlice(sliceOf(events.filter((_, index) => index !== 3 && index !== 4)));
    const hole = { shard: 0, epoch, acceptedBy: 'Ada', reason: 'Redis lost its last second' };
    for (const [fromSeq, toSeq] of [
      [4, 20],
      [1, 3],
      [5, 4],
      [0, 5],
    ] as const) {
      await expect(
        acceptHole(database.pool, { ...hole, fromSeq, toSeq }, nowMs),
      ).rejects.toMatchObject({ code: 'invalid_request' });
    }
    await acceptHole(database.pool, { ...hole, fromSeq: 4, toSeq: 5 }, nowMs);
    expect(await progressOf(epoch)).toMatchObject({ watermarkSeq: 10, holeSince: null });
    const { rows } = await database.pool.query(
      `select details ->> 'reason' as reason from ledger_alarm where subject = $1 and cleared_at is not null`,
      [`0/${epoch}/4-5`],
    );
    expect(rows).toEqual([{ reason: hole.reason }]);
    const late = events[3];
    await ledger.bookSlice({ ...sliceOf(late ? [late] : []), order: 'unfenced' });
    expect(await books()).toEqual(balanced(9));
  });

  it('moves over more full blocks at once than it reads ahead', async () => {
    const epoch = newId();
    const count = 70_000;
    const event = usageEvent(tenant, nowMs);
    const [first] = someEvents(1);
    if (!first) throw new Error('an event');
    // Arrivals alone: 70,000 rows would make the test slow and say no more.
    const { recordArrivals } = await import('./progress-tables.js');
    const { inTransaction } = await import('../transaction.js');
    const arrivals = Array.from({ length: count }, (_, index) => ({
      shard: 3,
      epoch,
      seq: index + 1,
      endedAtMs: nowMs + index,
    }));
    const book = (some: typeof arrivals) =>
      inTransaction(database.pool, (client) => recordArrivals(client, some, nowMs));
    await book(arrivals.slice(1));
    expect(await progressOf(epoch)).toMatchObject({ watermarkSeq: 0, highestSeq: count });
    await book(arrivals.slice(0, 1));
    expect(await progressOf(epoch)).toMatchObject({ watermarkSeq: count, highestSeq: count });
    expect(event.data.usage.input).toBe(1_000);
  });
});

describe('days', () => {
  it.each([
    'Asia/Shanghai',
    'America/St_Johns',
    'Pacific/Kiritimati',
    'Pacific/Pago_Pago',
    'Australia/Lord_Howe',
  ])('in %s sum to the same total, and so they do after the zone was changed', async (zone) => {
    const of = testTenant();
    await database.prisma.enterprise.create({
      data: { id: of.enterprise.id, name: 'Acme', timeZone: zone, currency: 'USD', settings: {} },
    });
    const epoch = newId();
    const events = Array.from({ length: 96 }, (_, index) =>
      numbered(usageEvent(of, nowMs - index * 30 * 60_000), index + 1, { epoch }),
    );
    await ledger.bookSlice(sliceOf(events));
    expect(await books(of)).toEqual(balanced(96));
    const days = async () => {
      const { rows } = await database.pool.query<{ day: string; n: number }>(
        `select to_char(day, 'YYYY-MM-DD') as day, sum(requests)::int as n from usage_rollup_day
           where enterprise_id = $1 group by 1`,
        [of.enterprise.id],
      );
      return new Map(rows.map(({ day, n }) => [day, n]));
    };
    const expected = (timeZone: string) => {
      const format = new Intl.DateTimeFormat('en-CA', { timeZone, dateStyle: 'short' });
      const counts = new Map<string, number>();
      for (const { data } of events) {
        const day = format.format(new Date(data.reservedAt));
        counts.set(day, (counts.get(day) ?? 0) + 1);
      }
      return counts;
    };
    expect(await days()).toEqual(expected(zone));
    await changeUsageZone(database.pool, of.enterprise.id, 'Europe/Berlin');
    expect(await days()).toEqual(expected('Europe/Berlin'));
    expect(await books(of)).toEqual(balanced(96));
  });
});
