import { type ChildProcess, spawn } from 'node:child_process';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { newId, shardOf, type RefusalEvent, type UnnumberedUsageEvent } from '@weir/domain';
import { connectKafka, readOutboxes } from '@weir/metering';
import { meteringStatus, openAlarms, readProgress, UsageLedger } from '@weir/persistence';
import {
  createTestDatabase,
  kafkaBrokersOrNull,
  openTestRedis,
  testTenant,
  usageEvent,
  waitFor,
} from '@weir/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { replay, startsOf } from './replay.js';
import { openHarness, shardCount, type WorkerHarness } from './testing/worker-harness.js';

const brokers = kafkaBrokersOrNull();
const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const tenants = Array.from({ length: 6 }, () => testTenant());

let harness: WorkerHarness;
let children: ChildProcess[] = [];
let proxies: Server[] = [];
afterEach(async () => {
  for (const child of children) child.kill('SIGKILL');
  children = [];
  await harness.close();
  for (const proxy of proxies) proxy.close();
  proxies = [];
});

const testServices = async () => ({
  database: await createTestDatabase(),
  redis: openTestRedis(),
});

let made = 0;
function events(count: number, atMs = Date.now()): UnnumberedUsageEvent[] {
  return Array.from({ length: count }, (_, index) => {
    const tenant = tenants[(made += 1) % tenants.length];
    if (!tenant) throw new Error('a tenant');
    return usageEvent(tenant, atMs - index, { usage: { input: made } });
  });
}

/** What the books say, and what they must say after these events. */
async function books() {
  const { rows } = await harness.database.pool.query(
    `select (select count(*)::int from usage_event) as rows,
       (select count(distinct (enterprise_id, event_id))::int from usage_event) as ids,
       (select coalesce(sum(cost_pico), 0)::text from usage_event) as pico,
       (select coalesce(sum(requests), 0)::int from usage_rollup) as quarter_requests,
       (select coalesce(sum(cost_pico), 0)::text from usage_rollup) as quarter_pico,
       (select coalesce(sum(requests), 0)::int from usage_rollup_day) as day_requests,
       (select coalesce(sum(cost_pico), 0)::text from usage_rollup_day) as day_pico`,
  );
  return rows[0];
}
function booksOf(settled: readonly UnnumberedUsageEvent[]) {
  const pico = settled.reduce((sum, { data }) => sum + BigInt(data.costPico), 0n).toString();
  const count = settled.length;
  return {
    rows: count,
    ids: count,
    pico,
    quarter_requests: count,
    quarter_pico: pico,
    day_requests: count,
    day_pico: pico,
  };
}
const rowCount = async () => Number((await books()).rows);
const waiting = async () =>
  (await readOutboxes(harness.redis.client, harness.redis.prefix, shardCount)).reduce(
    (sum, { entries }) => sum + entries,
    0,
  );

function refusal(): RefusalEvent {
  const [tenant] = tenants;
  if (!tenant) throw new Error('a tenant');
  const { enterprise, user, key } = tenant;
  return {
    id: newId(),
    at: new Date().toISOString(),
    requestId: newId(),
    enterprise,
    departments: [...tenant.departments],
    user,
    key,
    model: 'demo-large',
    route: '/v1/chat/completions',
    outcome: 'refused',
    code: 'rate_limit_exceeded',
    scope: null,
    metric: 'requests',
    window: 'minute',
    retryAfterMs: 1_200.5,
  };
}

/** A worker as a process of its own, so that it can be killed. `npm test` has built it. */
function spawnWorker(overrides: Record<string, string> = {}): ChildProcess {
  const main = join(import.meta.dirname, '..', 'dist', 'main.js');
  const child = spawn(process.execPath, [main], {
    env: { PATH: process.env['PATH'], PORT: '0', ...harness.env(overrides) },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  children.push(child);
  return child;
}

const modes: { name: string; kafka: readonly string[] | null }[] = [
  { name: 'through Kafka', kafka: brokers },
  { name: 'directly', kafka: [] },
];

for (const { name, kafka } of modes) {
  describe.skipIf(kafka === null)(`usage ${name}`, () => {
    beforeEach(async () => {
      harness = await openHarness(await testServices(), kafka ?? []);
    });

    it('reaches the books once each, with what was settled before the first start, and leaves the outbox empty', async () => {
      const before = events(120);
      await harness.settle(before);
      const worker = harness.start();
      const after = events(80);
      await harness.settle(after);
      await waitFor('all booked', async () => (await rowCount()) === 200);
      await waitFor('the outbox is empty', async () => (await waiting()) === 0);
      expect(await books()).toEqual(booksOf([...before, ...after]));
      const readiness = await worker.health.readiness();
      expect(readiness.checks).toMatchObject({
        database: { status: 'ok' },
        redis: { status: 'ok' },
      });
    });

    it('is complete up to now, without a hole, once nothing is under way', async () => {
      const since = Date.now();
      harness.start();
      await harness.settle(events(50));
      await waitFor('all booked', async () => (await rowCount()) === 50);
      await waitFor('complete up to now', async () => {
        const { completeUpTo, lagEvents } = await meteringStatus(harness.database.pool);
        return completeUpTo !== null && completeUpTo.getTime() > since && lagEvents === 0n;
      });
      expect(await meteringStatus(harness.database.pool)).toMatchObject({
        lagEvents: 0n,
        holes: [],
        deadLetters: 0,
      });
      for (const line of await readProgress(harness.database.pool)) {
        expect(line.watermarkSeq).toBe(line.highestSeq);
      }
    });

    it('books refusals apart, in no sum', async () => {
      harness.start();
      const event = refusal();
      await harness.refuse(event);
      const { rows } = await waitFor('the refusal', async () => {
        const result = await harness.database.pool.query('select code from refusal where id = $1', [
          event.id,
        ]);
        return result.rows.length === 1 && result;
      });
      expect(rows).toEqual([{ code: 'rate_limit_exceeded' }]);
      expect(await books()).toEqual(booksOf([]));
    });

    it('goes on after an outbox entry that is no event, which becomes a dead letter with all it had', async () => {
      const good = events(10);
      await harness.settle(good.slice(0, 5));
      const [tenant] = tenants;
      const shard = shardOf(tenant?.enterprise.id ?? '', shardCount);
      await harness.redis.client.xadd(
        `${harness.redis.prefix}:{s${String(shard).padStart(2, '0')}}:outbox`,
        '*',
        'id',
        'poison',
        'event',
        'not json',
      );
      await harness.settle(good.slice(5));
      harness.start();
      await waitFor('all booked', async () => (await rowCount()) === 10);
      const { rows } = await waitFor('the dead letter', async () => {
        const result = await harness.database.pool.query<{ value: Buffer }>(
          'select value from dead_letter',
        );
        return result.rows.length === 1 && result;
      });
      expect(JSON.parse(rows[0]?.value.toString() ?? '')).toEqual({
        id: 'poison',
        event: 'not json',
      });
      expect(await books()).toEqual(booksOf(good));
    });

    it('loses and doubles nothing while workers are killed and replaced under load', async () => {
      const settled: UnnumberedUsageEvent[] = [];
      let workers = [spawnWorker(), spawnWorker()];
      for (let round = 0; round < 4; round += 1) {
        const batch = events(300);
        settled.push(...batch);
        await harness.settle(batch);
        const booked = await rowCount();
        // In the middle of its work: some of the batch is booked.
        await waitFor('progress', async () => (await rowCount()) > booked, 40_000);
        workers[round % 2]?.kill('SIGKILL');
        workers = workers.map((worker, index) => (index === round % 2 ? spawnWorker() : worker));
      }
      await waitFor('all booked', async () => (await rowCount()) === settled.length, 60_000);
      expect(await books()).toEqual(booksOf(settled));
      expect(await meteringStatus(harness.database.pool)).toMatchObject({ holes: [] });
    }, 120_000);

    it('books once although its database connections are cut again and again, in the middle of transactions', async () => {
      harness.start();
      const settled = events(1_500);
      for (let from = 0; from < settled.length; from += 300) {
        await harness.settle(settled.slice(from, from + 300));
        await harness.database.pool.query(
          `select pg_terminate_backend(pid) from pg_stat_activity
           where datname = current_database() and application_name = 'weir-ledger'`,
        );
      }
      await waitFor('all booked', async () => (await rowCount()) === settled.length, 60_000);
      expect(await books()).toEqual(booksOf(settled));
    }, 90_000);

    it('shows its lag and stays small while the database is away, and catches up', async () => {
      const database = await faultyProxy(harness.databaseUrl);
      harness.start({ DATABASE_URL: database.url, WORKER_ROLES: 'relay,ledger' });
      const watcher = harness.start({ WORKER_ROLES: 'jobs' });
      const first = events(10);
      await harness.settle(first);
      await waitFor('the first are booked', async () => (await rowCount()) === 10);
      database.cut();
      const backlog = events(4_000);
      for (let from = 0; from < backlog.length; from += 500) {
        await harness.settle(backlog.slice(from, from + 500));
      }
      await waitFor('the lag shows', async () => {
        const { lagEvents } = await meteringStatus(harness.database.pool);
        // At least: the relay carries each record at least once.
        return lagEvents >= 4_000n;
      });
      const { completeUpTo } = await meteringStatus(harness.database.pool);
      expect(completeUpTo?.getTime() ?? 0).toBeLessThan(Date.now());
      expect(await rowCount()).toBe(10);
      database.mend();
      await waitFor('caught up', async () => (await rowCount()) === 4_010, 60_000);
      expect(await books()).toEqual(booksOf([...first, ...backlog]));
      await watcher.stop();
    }, 90_000);
  });
}

describe.skipIf(brokers === null)('the usage topic', () => {
  const usageTopic = () => `${harness.topicPrefix}weir.usage.v1`;
  beforeEach(async () => {
    harness = await openHarness(await testServices(), brokers ?? []);
  });

  it('is read again from the offsets that a person names, and from nowhere that they did not mean', () => {
    expect(startsOf([])).toEqual(new Map());
    expect(startsOf(['--from', '3:1200', '--from', '0:0'])).toEqual(
      new Map([
        [3, 1200n],
        [0, 0n],
      ]),
    );
    for (const args of [
      ['--from'],
      ['--from', '3'],
      ['--from', '3:-1'],
      ['--frm', '3:1'],
      ['3:1'],
    ]) {
      expect(startsOf(args)).toBeNull();
    }
  });

  it('can be read again from any offset: nothing changes', async () => {
    harness.start();
    const settled = events(200);
    await harness.settle(settled);
    await waitFor('all booked', async () => (await rowCount()) === 200);
    const broker = connectKafka({ brokers: brokers ?? [], clientId: 'replay', logger: silent });
    const ledger = new UsageLedger(harness.database.pool);
    const again = (from: ReadonlyMap<number, bigint>) =>
      replay(broker, ledger, { topic: usageTopic(), from, sliceMax: 50 });
    expect(await again(new Map())).toEqual({
      read: 200,
      booked: 0,
      repeated: 200,
      conflicts: 0,
      deadLetters: 0,
    });
    const ends = await broker.offsetsOf(usageTopic());
    const last = new Map(ends.map(({ partition, high }) => [partition, high - 1n]));
    expect(await again(last)).toMatchObject({ read: ends.length, booked: 0 });
    expect(await books()).toEqual(booksOf(settled));
    await broker.close();
  });

  it('loses nothing when the books are restored from a backup: the consumer reads again from where they stand', async () => {
    harness.start();
    const settled = events(150);
    await harness.settle(settled.slice(0, 100));
    await waitFor('the first booked', async () => (await rowCount()) === 100);
    // As an older copy of the books: the last bookings and the offsets that went with them are gone.
    await harness.database.pool.query(`
      begin;
      delete from usage_event; delete from usage_rollup; delete from usage_rollup_day; delete from usage_rollup_month;
      delete from ledger_progress; delete from ledger_progress_block;
      update ledger_offset set next_offset = 0;
      commit`);
    await harness.settle(settled.slice(100));
    await waitFor('all booked again', async () => (await rowCount()) === 150, 40_000);
    expect(await books()).toEqual(booksOf(settled));
    const alarms = await openAlarms(harness.database.pool, 100);
    expect(alarms.filter(({ kind }) => kind === 'offset-gap')).toEqual([]);
  }, 60_000);
});

/** A TCP proxy before the database that can be cut off like a network or a machine. */
async function faultyProxy(databaseUrl: string) {
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((client) => {
    if (isCut) {
      client.destroy();
      return;
    }
    const upstream = connect(Number(target.port), target.hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        client.destroy();
        upstream.destroy();
        sockets.delete(socket);
      });
    }
    client.pipe(upstream).pipe(client);
  });
  proxies.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(databaseUrl);
  url.port = String((server.address() as { port: number }).port);
  return {
    url: url.href,
    cut: () => {
      isCut = true;
      for (const socket of sockets) socket.destroy();
    },
    mend: () => {
      isCut = false;
    },
  };
}
