import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  outboxKey,
  refusalStreamKey,
  shardOf,
  type RefusalEvent,
  type UnnumberedUsageEvent,
} from '@weir/domain';
import { type Database, openDatabase } from '@weir/persistence';
import { createLogger, HealthChecks, Metrics, Shutdown } from '@weir/platform';
import type { Redis } from 'ioredis';
import { workerConfigSchema } from '../config.js';
import { startWorker, type WorkerSurroundings } from '../worker.js';

export const shardCount = 4;

/** Of a suite alone; from the test helpers, which production code does not import. */
export type TestServices = {
  readonly database: { readonly url: string; drop(): Promise<void> };
  readonly redis: {
    readonly url: string;
    readonly prefix: string;
    readonly client: Redis;
    close(): Promise<void>;
  };
};

/** A database, a Redis prefix, topics and a folder of their own, and workers on them. */
export type WorkerHarness = {
  readonly database: Database;
  readonly databaseUrl: string;
  readonly redis: TestServices['redis'];
  readonly exportDir: string;
  readonly topicPrefix: string;
  /** Settings for a worker on these, for processes of their own. */
  env(overrides?: Record<string, string>): Record<string, string>;
  /** A worker in this process. */
  start(
    overrides?: Record<string, string>,
    surroundings?: Partial<WorkerSurroundings>,
  ): RunningWorker;
  /** Appends events to the outbox as the settle script does. */
  settle(events: readonly UnnumberedUsageEvent[]): Promise<void>;
  refuse(event: RefusalEvent): Promise<void>;
  close(): Promise<void>;
};

export type RunningWorker = { health: HealthChecks; metrics: Metrics; stop(): Promise<void> };

export async function openHarness(
  { database: testDatabase, redis }: TestServices,
  kafkaBrokers: readonly string[],
): Promise<WorkerHarness> {
  const database = openDatabase({ url: testDatabase.url, poolMax: 6 });
  const exportDir = await mkdtemp(join(tmpdir(), 'weir-exports-'));
  const topicPrefix = `${randomUUID()}.`;
  const running = new Set<RunningWorker>();
  const epoch = randomUUID();

  const env: WorkerHarness['env'] = (overrides = {}) => ({
    DATABASE_URL: testDatabase.url,
    REDIS_URL: redis.url,
    REDIS_PREFIX: redis.prefix,
    SHARD_COUNT: String(shardCount),
    KAFKA_BROKERS: kafkaBrokers.join(','),
    KAFKA_TOPIC_PREFIX: topicPrefix,
    KAFKA_PARTITIONS: '3',
    KAFKA_SESSION_TIMEOUT_MS: '6000',
    RELAY_CLAIM_IDLE_MS: '2000',
    EXPORT_DIR: exportDir,
    LOG_LEVEL: 'warn',
    ...overrides,
  });

  const harness: WorkerHarness = {
    database,
    databaseUrl: testDatabase.url,
    redis,
    exportDir,
    topicPrefix,
    env,
    start: (overrides, surroundings) => {
      const logger = createLogger({ name: 'worker', level: 'silent' });
      const shutdown = new Shutdown(logger, 10_000);
      const health = new HealthChecks(logger);
      const metrics = new Metrics('worker');
      startWorker(workerConfigSchema.parse(env(overrides)), {
        logger,
        metrics,
        health,
        shutdown,
        onFatal: (error) => {
          throw error;
        },
        ...surroundings,
      });
      const worker: RunningWorker = {
        health,
        metrics,
        stop: async () => {
          running.delete(worker);
          shutdown.begin();
          for (const phase of ['stop-intake', 'drain', 'disconnect'] as const) {
            await shutdown.runPhase(phase);
          }
        },
      };
      running.add(worker);
      return worker;
    },
    settle: async (events) => {
      const pipeline = redis.client.pipeline();
      for (const event of events) {
        const shard = shardOf(event.data.enterprise.id, shardCount);
        pipeline.eval(
          `local seq = redis.call('INCR', KEYS[1])
           return redis.call('XADD', KEYS[2], '*', 'id', ARGV[1], 'seq', seq, 'epoch', ARGV[2], 'event', ARGV[3])`,
          2,
          `${redis.prefix}-seq-${shard}`,
          outboxKey(redis.prefix, shard),
          event.id,
          epoch,
          JSON.stringify(event),
        );
      }
      const replies = await pipeline.exec();
      for (const [error] of replies ?? []) if (error) throw error;
    },
    refuse: async (event) => {
      const shard = shardOf(event.enterprise.id, shardCount);
      await redis.client.xadd(
        refusalStreamKey(redis.prefix, shard),
        '*',
        'event',
        JSON.stringify(event),
      );
    },
    close: async () => {
      await Promise.all([...running].map((worker) => worker.stop()));
      await database.close();
      await testDatabase.drop();
      await redis.close();
      await rm(exportDir, { recursive: true, force: true });
    },
  };
  return harness;
}
