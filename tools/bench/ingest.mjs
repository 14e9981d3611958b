// How fast usage gets into the books, and how soon.

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { outboxKey, usageTopic } from '../../libs/domain/dist/index.js';
import { connectKafka, connectMeteringRedis } from '../../libs/metering/dist/index.js';
import { UsageLedger } from '../../libs/persistence/dist/index.js';
import { freePort } from '../launcher/lib/ports.mjs';
import { manageProcess } from '../launcher/lib/processes.mjs';
import { repoDir } from '../launcher/lib/paths.mjs';
import { cpuSecondsOf, logMachine, numberOption, withServices } from './lib/bench-services.mjs';
import { grouped, quantile, tenth } from './lib/figures.mjs';
import {
  EventSpool,
  KEYS_DEFAULT,
  makeTenants,
  storeTenants,
  travelling,
  usageSource,
} from './lib/usage-load.mjs';

/** As the worker has them by default. */
const SLICE_MAX = 1_000;
const PARTITIONS = 6;
const PARTITIONS_AT_ONCE = 3;
/** What one fetch of the worker brings of a partition. */
const SLICES_PER_FETCH = 3;
/** What the relay reads, and produces, at once. */
const RELAY_BATCH = 500;
const BATCHES_IN_FLIGHT = 4;

/** Events made for each second asked for: `seconds` scales all parts, and 30 give more than two million rows. */
const TX_EVENTS_PER_SECOND = 40_000;
const KAFKA_EVENTS_PER_SECOND = 26_000;
const DELAY_SECONDS_PER_SECOND = 2;
/** The load under which the delay is measured; the other parts' events carry times of such a load. */
const CALLS_PER_SECOND = 2_000;
const SEND_EVERY_MS = 5;
const PREFIX = 'weir';

const READY_MS = 60_000;
/** The worst that a part may take, in multiples of what it should: then it failed, and says how far it came. */
const BEHIND_MAX_MS = 10 * 60_000;

/**
 * @param {{ seconds: number, args: string[], log: (line: string) => void }} options
 *   args: `--seed N` for other draws, `--keys N` for another number of API keys (departments and users follow)
 */
export async function run({ seconds, args, log }) {
  logMachine(log);
  const seed = numberOption(args, '--seed', 7);
  const keys = numberOption(args, '--keys', KEYS_DEFAULT);
  return withServices({ names: ['postgres', 'redis', 'kafka'], log }, async (services) => {
    const { postgres } = services;
    if (services.kafka === null) throw new Error('this benchmark needs Kafka: see the line above');
    await keepCommitTimes(postgres);
    const pool = new pg.Pool({ connectionString: postgres.url, max: 8 });
    pool.on('error', (error) => log(`postgres connection: ${error.message}`));
    const context = { ...services, pool, tenants: makeTenants(keys), seed, seconds, log };
    try {
      await storeTenants(pool, context.tenants);
      const tx = await measureTransactions(context);
      const copy = await measureCopy(context);
      const worker = await startWorker(context);
      const kafka = await measureKafka(context);
      const delay = await measureDelay(context);
      await worker.stop();
      const { rows } = await pool.query('select count(*) as count from usage_event');
      log(`${grouped(Number(rows[0].count))} rows in the books`);
      return { ...copy, ...tx, ...kafka, ...delay };
    } finally {
      await pool.end();
    }
  });
}

/** PostgreSQL can tell when a row became visible: exact, and without a query while the load runs. */
async function keepCommitTimes(postgres) {
  const client = new pg.Client({ connectionString: postgres.adminUrl });
  await client.connect();
  await client.query('alter system set track_commit_timestamp = on');
  await client.end();
  await postgres.restart();
}

/** The ledger alone: events made ahead, cut into slices per partition as the worker's consumer does. */
async function measureTransactions({ pool, postgres, tenants, seed, seconds, log }) {
  const count = Math.ceil(TX_EVENTS_PER_SECOND * seconds);
  log(`transaction: making ${grouped(count)} events`);
  const next = usageSource(tenants, { seed, epoch: `bench-tx-${seed}` });
  const partitions = Array.from({ length: PARTITIONS }, () => new EventSpool());
  const startMs = Date.now() - (count / CALLS_PER_SECOND) * 1_000;
  for (let index = 0; index < count; index += 1) {
    const made = next(startMs + Math.floor((index / CALLS_PER_SECOND) * 1_000));
    // The key is random, and so is the partition.
    partitions[index % PARTITIONS].add(made.event.id, travelling(made));
  }
  await pool.query('checkpoint');

  const ledger = new UsageLedger(pool);
  const commits = [];
  const waiting = partitions.map((spool, partition) => ({ spool, partition, at: 0 }));
  let booked = 0;
  const lane = async () => {
    for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) {
      for (let slices = 0; slices < SLICES_PER_FETCH && one.at < one.spool.length; slices += 1) {
        const end = Math.min(one.at + SLICE_MAX, one.spool.length);
        const records = [];
        for (let offset = one.at; offset < end; offset += 1) {
          const key = Buffer.from(one.spool.id(offset));
          records.push({ offset: BigInt(offset), key, value: one.spool.value(offset) });
        }
        const begun = performance.now();
        const slice = { topic: 'bench.tx', partition: one.partition, records, order: 'fenced' };
        const result = await ledger.bookSlice(slice);
        commits.push(performance.now() - begun);
        if (result.outcome !== 'booked' || result.booked !== records.length) {
          throw new Error(
            `a slice of ${records.length} was not booked in full: ${inspect(result)}`,
          );
        }
        booked += result.booked;
        one.at = end;
      }
      if (one.at < one.spool.length) waiting.push(one);
    }
  };
  const cpu = () => [cpuSecondsOf(process.pid), cpuSecondsOf(postgres.pid)];
  const cpuBefore = cpu();
  const begun = performance.now();
  await Promise.all(Array.from({ length: PARTITIONS_AT_ONCE }, lane));
  const ms = performance.now() - begun;
  const [nodeCpu, postgresCpu] = cpu().map((after, index) => after - cpuBefore[index]);

  const { rows } = await pool.query(
    `select (select count(*) from usage_event) as events,
       (select sum(requests) from usage_rollup) as quarters,
       (select sum(requests) from usage_rollup_day) as days,
       (select sum(requests) from usage_rollup_month) as months,
       (select sum(highest_seq) from ledger_progress where watermark_seq = highest_seq) as complete,
       (select sum(pg_total_relation_size(inhrelid)) from pg_inherits
        where inhparent = 'usage_event'::regclass) as bytes,
       (select count(*) from usage_rollup) as rollup_rows,
       pg_total_relation_size('usage_rollup') + pg_total_relation_size('usage_rollup_day')
         + pg_total_relation_size('usage_rollup_month') as rollup_bytes`,
  );
  const [found] = rows;
  for (const name of ['events', 'quarters', 'days', 'months', 'complete']) {
    if (Number(found[name]) !== booked) throw new Error(`${name}: ${found[name]} of ${booked}`);
  }
  const rate = booked / (ms / 1_000);
  const p50 = quantile(commits, 0.5);
  const p99 = quantile(commits, 0.99);
  const bytes = Number(found.bytes) / booked;
  log(
    `transaction: ${grouped(booked)} events in ${(ms / 1_000).toFixed(1)} s = ${grouped(rate)}/s; ` +
      `slices of ${SLICE_MAX}, ${PARTITIONS_AT_ONCE} at once: commit p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`,
  );
  log(
    `transaction: processor time per 1,000 events: ${((nodeCpu / booked) * 1e6).toFixed(0)} ms ours, ` +
      `${((postgresCpu / booked) * 1e6).toFixed(0)} ms PostgreSQL's`,
  );
  log(
    `transaction: ${bytes.toFixed(0)} bytes per row with its indexes; ${grouped(Number(found.rollup_rows))} roll-up rows ` +
      `per quarter (${grouped(Number(found.rollup_bytes) / 1e6)} MB with those per day and month)`,
  );
  return {
    tx_events_per_s: Math.round(rate),
    commit_p99_ms: tenth(p99),
    bytes_per_row: Math.round(bytes),
  };
}

/**
 * The yardstick: the same rows by `COPY` into a table of the same shape without a single index or check, in one
 * transaction. Nothing that books a row can be faster.
 */
async function measureCopy({ pool, log }) {
  const client = await pool.connect();
  try {
    const chunks = [];
    const stream = client.query(copyTo('copy (select * from usage_event limit 500000) to stdout'));
    for await (const chunk of stream) chunks.push(chunk);
    await client.query('create table copy_yardstick (like usage_event including defaults)');
    await client.query('checkpoint');
    const begun = performance.now();
    const sink = client.query(copyFrom('copy copy_yardstick from stdin'));
    for (const chunk of chunks) if (!sink.write(chunk)) await once(sink, 'drain');
    sink.end();
    await once(sink, 'finish');
    const ms = performance.now() - begun;
    const { rows } = await client.query('select count(*) as count from copy_yardstick');
    await client.query('drop table copy_yardstick');
    const rate = Number(rows[0].count) / (ms / 1_000);
    log(
      `COPY: ${grouped(Number(rows[0].count))} rows in ${(ms / 1_000).toFixed(1)} s = ${grouped(rate)}/s ` +
        'into a table of the same columns without index or check (the yardstick)',
    );
    return { copy_rows_per_s: Math.round(rate) };
  } finally {
    client.release();
  }
}

/** The worker as it is deployed, without its jobs. */
async function startWorker({ dir, postgres, redis, kafka, log }) {
  const port = await freePort();
  const worker = manageProcess({
    name: 'metering-worker',
    command: process.execPath,
    args: [join(repoDir, 'apps', 'metering-worker', 'dist', 'main.js')],
    cwd: repoDir,
    env: {
      PATH: process.env.PATH,
      NODE_ENV: 'production',
      LOG_LEVEL: 'warn',
      HOST: '127.0.0.1',
      PORT: String(port),
      WEIR_SECRET_KEY: randomBytes(32).toString('base64'),
      DATABASE_URL: postgres.url,
      REDIS_URL: redis.url,
      REDIS_PREFIX: PREFIX,
      KAFKA_BROKERS: kafka.url,
      WORKER_ROLES: 'relay,ledger',
      EXPORT_DIR: join(dir, 'exports'),
    },
    logFile: join(dir, 'logs', 'metering-worker.log'),
    readyMs: READY_MS,
    isReady: async () => {
      try {
        const response = await fetch(`http://127.0.0.1:${port}/readyz`, {
          signal: AbortSignal.timeout(2_000),
        });
        return response.ok;
      } catch {
        return false;
      }
    },
    onUnexpectedExit: log,
  });
  await worker.start();
  return worker;
}

/** Waits until the books hold a source's events without a hole. */
async function untilBooked(pool, epoch, count) {
  const deadline = Date.now() + BEHIND_MAX_MS;
  for (;;) {
    const { rows } = await pool.query(
      `select coalesce(sum(highest_seq), 0) as highest, coalesce(sum(watermark_seq), 0) as complete
       from ledger_progress where epoch = $1`,
      [epoch],
    );
    if (Number(rows[0].complete) === count) break;
    if (Date.now() > deadline) {
      throw new Error(`${rows[0].complete} of ${count} events are in the books (${epoch})`);
    }
    await sleep(50);
  }
  const { rows } = await pool.query(
    `select count(*) as count, extract(epoch from max(pg_xact_commit_timestamp(xmin))) * 1000 as last
     from usage_event where epoch = $1`,
    [epoch],
  );
  if (Number(rows[0].count) !== count) throw new Error(`${rows[0].count} rows of ${count} events`);
  return { lastCommitAtMs: Number(rows[0].last) };
}

/** Produced as the relay does, consumed and booked by the worker: from the first message to the last row's commit. */
async function measureKafka({ pool, kafka, tenants, seed, seconds, log }) {
  const count = Math.ceil(KAFKA_EVENTS_PER_SECOND * seconds);
  log(`kafka: making ${grouped(count)} events`);
  const epoch = `bench-kafka-${seed}`;
  const next = usageSource(tenants, { seed: seed + 1, epoch });
  const spool = new EventSpool();
  const startMs = Date.now() - (count / CALLS_PER_SECOND) * 1_000;
  for (let index = 0; index < count; index += 1) {
    const made = next(startMs + Math.floor((index / CALLS_PER_SECOND) * 1_000));
    spool.add(made.event.id, travelling(made));
  }
  const logger = quietLogger(log);
  const broker = connectKafka({ brokers: [kafka.url], clientId: 'weir-bench', logger });
  try {
    let at = 0;
    const lane = async () => {
      while (at < count) {
        const batch = [];
        for (; batch.length < RELAY_BATCH && at < count; at += 1) {
          batch.push({ key: spool.id(at), value: spool.value(at) });
        }
        await broker.produce(usageTopic, batch);
      }
    };
    const begunAtMs = Date.now();
    await Promise.all(Array.from({ length: BATCHES_IN_FLIGHT }, lane));
    const produceMs = Date.now() - begunAtMs;
    const { lastCommitAtMs } = await untilBooked(pool, epoch, count);
    const ms = lastCommitAtMs - begunAtMs;
    const rate = count / (ms / 1_000);
    log(
      `kafka: ${grouped(count)} events in ${(ms / 1_000).toFixed(1)} s = ${grouped(rate)}/s from the producer to the row ` +
        `(all were produced after ${(produceMs / 1_000).toFixed(1)} s)`,
    );
    return { kafka_events_per_s: Math.round(rate) };
  } finally {
    await broker.close();
  }
}

/**
 * A steady load into the outbox, as settle writes it, and how long each event takes to its committed row. The clock of
 * each begins when it was due, not when it was sent: a sender that falls behind cannot hide a delay.
 */
async function measureDelay({ pool, redis, tenants, seed, seconds, log }) {
  const count = Math.ceil(CALLS_PER_SECOND * DELAY_SECONDS_PER_SECOND * seconds);
  log(`delay: ${grouped(count)} events at ${grouped(CALLS_PER_SECOND)} a second`);
  const epoch = `bench-delay-${seed}`;
  const next = usageSource(tenants, { seed: seed + 2, epoch });
  const client = connectMeteringRedis({ url: redis.url, logger: quietLogger(log) });
  try {
    const startMs = Date.now();
    const pending = [];
    for (let sent = 0; sent < count;) {
      const due = Math.min(count, Math.floor(((Date.now() - startMs) * CALLS_PER_SECOND) / 1_000));
      const pipeline = client.pipeline();
      for (; sent < due; sent += 1) {
        const dueMs = startMs + Math.floor((sent / CALLS_PER_SECOND) * 1_000);
        const { event, position } = next(dueMs - 500, dueMs);
        const fields = ['id', event.id, 'seq', position.seq, 'epoch', epoch];
        pipeline.xadd(
          outboxKey(PREFIX, position.shard),
          '*',
          ...fields,
          'event',
          JSON.stringify(event),
        );
      }
      if (pipeline.length > 0) pending.push(pipeline.exec());
      if (pending.length > 100) await pending.shift();
      await sleep(SEND_EVERY_MS);
    }
    for (const replies of await Promise.all(pending)) {
      const failed = replies?.find(([error]) => error !== null);
      if (failed !== undefined) throw failed[0];
    }
    const sendMs = Date.now() - startMs;
    await untilBooked(pool, epoch, count);
    const { rows } = await pool.query(
      `select percentile_disc(array[0.5, 0.99, 1]) within group (order by delay) as delays
       from (select extract(epoch from pg_xact_commit_timestamp(xmin) - ended_at) * 1000 as delay
             from usage_event where epoch = $1) as one`,
      [epoch],
    );
    const [p50, p99, max] = rows[0].delays.map(Number);
    const rate = count / (sendMs / 1_000);
    log(
      `delay: ${grouped(count)} events at ${grouped(rate)}/s through outbox, relay, Kafka and ledger: ` +
        `p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms, longest ${max.toFixed(0)} ms`,
    );
    return { delay_p99_ms: tenth(p99) };
  } finally {
    client.disconnect();
  }
}

/** Only what goes wrong. */
function quietLogger(log) {
  const say = (fields, message) => log(`${message}: ${fields.err?.message ?? inspect(fields)}`);
  return { debug: () => {}, info: () => {}, warn: say, error: say };
}
