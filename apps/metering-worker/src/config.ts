import { defaultShardCount, refusalTopic, usageDeadLetterTopic, usageTopic } from '@weir/domain';
import { serverConfigShape } from '@weir/platform';
import { z } from 'zod';

const milliseconds = z.coerce.number('must be milliseconds').int();
const count = z.coerce.number('must be a whole number').int();

export const workerRoles = ['relay', 'ledger', 'jobs'] as const;
export type WorkerRole = (typeof workerRoles)[number];

const list = (text: string): string[] =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');

/** Everything that the worker reads from its environment. */
export const workerConfigSchema = z.object({
  ...serverConfigShape,
  PORT: serverConfigShape.PORT.default(4002),
  /** What this process does, comma-separated: `relay` (outbox to Kafka), `ledger` (Kafka to Postgres), `jobs`. A role that no process has is not done: events wait, exports stay queued. */
  WORKER_ROLES: z
    .string()
    .default('relay,ledger,jobs')
    .transform(list)
    .pipe(z.array(z.enum(workerRoles)).min(1, 'must name at least one of relay, ledger, jobs')),
  /** The books. A wrong one: the worker is not ready, events wait in Kafka or in the outbox. */
  DATABASE_URL: z.url({
    protocol: /^postgres(ql)?$/,
    error: 'must be postgresql://user:password@host:port/name',
  }),
  /** Most database connections of this process, for bookings and for jobs each. */
  DATABASE_POOL_MAX: count.min(2).max(100).default(6),
  /** Redis that holds counters, outbox and job queues. A wrong one: nothing is relayed and no lease is reaped. */
  REDIS_URL: z.url().default('redis://127.0.0.1:6379'),
  /** Whether REDIS_URL is a node of a Redis Cluster. */
  REDIS_CLUSTER: z.stringbool().default(false),
  /** First part of every key. Must be the same in all apps, or the worker finds no outbox. */
  REDIS_PREFIX: z
    .string()
    .regex(/^[\w.-]{1,32}$/)
    .default('weir'),
  /** Number of shards, fixed for the life of an installation. Another number is refused by what Redis holds. */
  SHARD_COUNT: count.min(1).max(100).default(defaultShardCount),
  /** `host:port`, comma-separated. Empty: no Kafka, the ledger reads the outbox itself. Switch only while the outbox is empty. */
  KAFKA_BROKERS: z.string().default('').transform(list),
  /** Put before the topics' names, where several installations share a Kafka. Must be the same in all workers. */
  KAFKA_TOPIC_PREFIX: z
    .string()
    .regex(/^[\w.-]{0,64}$/)
    .default(''),
  /** Partitions of the usage topic when it is made: how many ledger workers can share the work. */
  KAFKA_PARTITIONS: count.min(1).max(256).default(6),
  /** How long a ledger worker may be silent before its partitions go to another one. Short: needless rebalances; long: a dead one's partitions wait. At least the broker's group.min.session.timeout.ms (6000). */
  KAFKA_SESSION_TIMEOUT_MS: milliseconds.min(6_000).max(300_000).default(15_000),
  /** How long a relay may hold entries of the outbox before another one takes them over. Shorter than a delivery takes: events travel twice, and are booked once. */
  RELAY_CLAIM_IDLE_MS: milliseconds.min(1_000).max(600_000).default(15_000),
  /** How long Kafka keeps events: how long the ledger may be away without loss. */
  KAFKA_RETENTION_HOURS: count
    .min(1)
    .max(24 * 365)
    .default(24 * 14),
  /** Most events per transaction of the ledger. Small: slow; large: long locks. */
  LEDGER_SLICE_MAX: count.min(1).max(10_000).default(1_000),
  /** Folder of finished exports; the admin API serves the files from there. */
  EXPORT_DIR: z.string().min(1).default('.weir/exports'),
  /** Months of usage rows that are kept; roll-ups stay. 0 keeps all. Too few: exports of older months are empty. */
  USAGE_RETENTION_MONTHS: count.min(0).max(600).default(0),
  /** Days that refused and failed calls are kept. */
  REFUSAL_RETENTION_DAYS: count.min(1).max(3_650).default(30),
  /** Pause between two looks for leases that have run out. Long: slots of dead gateways are freed late. */
  REAP_INTERVAL_MS: milliseconds.min(50).max(60_000).default(1_000),
  /** Seals upstream API keys; the worker only passes them on when it publishes policies anew. */
  WEIR_SECRET_KEY: z.string().optional(),
});
export type WorkerConfig = z.output<typeof workerConfigSchema>;

/** The topics' names in this installation. */
export function topicsOf(config: Pick<WorkerConfig, 'KAFKA_TOPIC_PREFIX'>) {
  const named = (topic: string): string => config.KAFKA_TOPIC_PREFIX + topic;
  return {
    usage: named(usageTopic),
    deadLetters: named(usageDeadLetterTopic),
    refusals: named(refusalTopic),
  };
}
