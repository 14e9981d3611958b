import { type Clock, systemClock } from '@weir/domain';
import { connectKafka, connectMeteringRedis, type RelayOptions } from '@weir/metering';
import { ensurePartitionsAhead, meteringStatus, openDatabase, watchHoles } from '@weir/persistence';
import type { HealthChecks, Logger, Metrics, Shutdown } from '@weir/platform';
import { connectQuotaRedis, createRedisEngine } from '@weir/quota';
import { Booking } from './booking.js';
import { topicsOf, type WorkerConfig } from './config.js';
import { ExportWorker } from './jobs/export-worker.js';
import { followZones, Maintenance } from './jobs/maintenance.js';
import { reconcileAll } from './jobs/reconciliation.js';
import { Loop } from './loop.js';
import { CounterKeeper } from './roles/counter-keeper.js';
import { Pipeline } from './roles/pipeline.js';
import { SourceWatch } from './roles/source-watch.js';
import { WorkerMetrics } from './worker-metrics.js';

/** A number that is missing for longer than that is a hole, not an event on its way. */
const holeGraceMs = 60_000;
const consumerSilenceMaxMs = 60_000;
const ledgerQueryTimeoutMs = 30_000;
const quotaCommandTimeoutMs = 5_000;

export type WorkerSurroundings = {
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly health: HealthChecks;
  readonly shutdown: Shutdown;
  readonly clock?: Clock;
  /** The process must end. */
  readonly onFatal: (error: Error) => void;
};

export type Worker = { readonly pipeline: Pipeline };

/** Puts the roles together, starts them, and says in which order they end. */
export function startWorker(config: WorkerConfig, surroundings: WorkerSurroundings): Worker {
  const { logger, metrics, health, shutdown, onFatal } = surroundings;
  const clock = surroundings.clock ?? systemClock;
  const workerMetrics = new WorkerMetrics(metrics.registry);
  const onConnectionError = (error: Error) => logger.warn({ err: error }, 'database connection');
  // Two pools: exports that read for minutes must not keep the ledger waiting for a connection.
  const books = openDatabase({
    url: config.DATABASE_URL,
    poolMax: config.DATABASE_POOL_MAX,
    applicationName: 'weir-ledger',
    statementTimeoutMs: ledgerQueryTimeoutMs,
    queryTimeoutMs: ledgerQueryTimeoutMs + 5_000,
    onConnectionError,
  });
  shutdown.onClose('disconnect', 'books', () => books.close());
  health.register('database', async () => void (await books.pool.query('select 1')), {
    timeoutMs: 3_000,
  });

  const redis = connectMeteringRedis({
    url: config.REDIS_URL,
    cluster: config.REDIS_CLUSTER,
    logger,
  });
  shutdown.onClose('disconnect', 'redis', () => redis.disconnect());
  // Without it events wait in the gateways, and what is in Kafka is booked all the same.
  health.register('redis', async () => void (await redis.ping()), {
    timeoutMs: 3_000,
    critical: false,
  });

  const broker =
    config.KAFKA_BROKERS.length === 0
      ? null
      : connectKafka({
          brokers: config.KAFKA_BROKERS,
          clientId: 'weir-worker',
          sessionTimeoutMs: config.KAFKA_SESSION_TIMEOUT_MS,
          logger,
        });
  if (broker === null) logger.info('no Kafka is configured: the ledger reads the outbox directly');
  else shutdown.onClose('disconnect', 'kafka', () => broker.close());

  const relay: RelayOptions = {
    redis,
    prefix: config.REDIS_PREFIX,
    shardCount: config.SHARD_COUNT,
    logger,
    batchMax: config.LEDGER_SLICE_MAX,
    claimIdleMs: config.RELAY_CLAIM_IDLE_MS,
    onDelivered: (count) => workerMetrics.relayed.inc(count),
  };
  const booking = new Booking(books, clock, logger, workerMetrics, topicsOf(config).deadLetters);
  const pipeline = new Pipeline({ config, logger, broker, relay, booking, onFatal });
  pipeline.start();
  shutdown.onClose('stop-intake', 'pipeline', () => pipeline.stop());
  health.register('pipeline', () => {
    const silentMs = pipeline.silentMs();
    if (silentMs !== null && silentMs > consumerSilenceMaxMs) {
      throw new Error(`Kafka has been silent for ${silentMs} ms`);
    }
    return pipeline.isRunning ? undefined : { degraded: 'waiting for Kafka' };
  });

  if (config.WORKER_ROLES.includes('jobs')) {
    startJobs(config, surroundings, { clock, workerMetrics, broker, relay, onConnectionError });
  }
  return { pipeline };
}

function startJobs(
  config: WorkerConfig,
  { logger, health, shutdown }: WorkerSurroundings,
  parts: {
    clock: Clock;
    workerMetrics: WorkerMetrics;
    broker: ReturnType<typeof connectKafka> | null;
    relay: RelayOptions;
    onConnectionError: (error: Error) => void;
  },
): void {
  const { clock, workerMetrics, broker, relay, onConnectionError } = parts;
  const database = openDatabase({
    url: config.DATABASE_URL,
    poolMax: config.DATABASE_POOL_MAX,
    applicationName: 'weir-jobs',
    onConnectionError,
  });
  shutdown.onClose('disconnect', 'jobs database', () => database.close());
  const quota = connectQuotaRedis({
    url: config.REDIS_URL,
    prefix: config.REDIS_PREFIX,
    shardCount: config.SHARD_COUNT,
    cluster: config.REDIS_CLUSTER,
    commandTimeoutMs: quotaCommandTimeoutMs,
    clock,
    logger,
  });
  shutdown.onClose('disconnect', 'quota redis', () => quota.close());
  const sources = new SourceWatch(database, broker, relay, clock, topicsOf(config).usage);
  const keeper = new CounterKeeper(quota, database, sources, clock, logger, workerMetrics);
  const exports = new ExportWorker({
    database,
    exportDir: config.EXPORT_DIR,
    shardCount: config.SHARD_COUNT,
    redisUrl: config.REDIS_URL,
    prefix: config.REDIS_PREFIX,
    clock,
    logger,
  });
  shutdown.onClose('stop-intake', 'exports', () => exports.close());
  const engine = createRedisEngine(quota);
  const maintenance = new Maintenance({
    database,
    redisUrl: config.REDIS_URL,
    prefix: config.REDIS_PREFIX,
    clock,
    logger,
    retentionMonths: config.USAGE_RETENTION_MONTHS,
    refusalDays: config.REFUSAL_RETENTION_DAYS,
    reconcile: () =>
      reconcileAll({
        database,
        engine,
        shardCount: config.SHARD_COUNT,
        clock,
        isDrained: (shard) => sources.isDrained(shard),
      }),
  });
  shutdown.onClose('stop-intake', 'maintenance', () => maintenance.close());

  let isScheduled = false;
  let areEpochsSound = false;
  const loops = [
    new Loop({
      name: 'epochs',
      everyMs: 1_000,
      logger,
      run: async () => {
        try {
          await quota.ready();
          await keeper.ensureEpochs();
          areEpochsSound = true;
        } catch (error) {
          areEpochsSound = false;
          throw error;
        }
      },
    }),
    new Loop({
      name: 'reaper',
      everyMs: config.REAP_INTERVAL_MS,
      logger,
      run: async (signal) => {
        await quota.ready();
        await keeper.reap(signal);
      },
    }),
    new Loop({ name: 'sources', everyMs: 1_000, logger, run: () => sources.note() }),
    new Loop({
      name: 'holes',
      everyMs: 5_000,
      logger,
      run: async () => {
        await watchHoles(database.pool, clock.now(), holeGraceMs);
        workerMetrics.observeStatus(await meteringStatus(database.pool), clock.now());
      },
    }),
    new Loop({
      name: 'zones',
      everyMs: 30_000,
      logger,
      run: () => followZones(database, logger),
    }),
    new Loop({
      name: 'schedules',
      everyMs: 60_000,
      logger,
      run: async () => {
        // At once and without Redis too: a booking must not be the first to need a partition.
        if (!isScheduled) await ensurePartitionsAhead(database.pool, clock.now(), 1);
        await maintenance.schedule();
        isScheduled = true;
        await exports.requeueLost();
      },
    }),
  ];
  for (const loop of loops) loop.start();
  shutdown.onClose('stop-intake', 'loops', async () => {
    await Promise.all(loops.map((loop) => loop.stop()));
  });
  health.register(
    'counters',
    () => {
      if (!areEpochsSound)
        return { degraded: 'the counters of a shard are being looked at or rebuilt' };
      return undefined;
    },
    { critical: false },
  );
}
