import { serverConfigShape } from '@weir/platform';
import { defaultShardCount } from '@weir/domain';
import { z } from 'zod';

const bytes = z.coerce.number('must be a number of bytes').int();
const milliseconds = z.coerce.number('must be milliseconds').int();
const count = z.coerce.number('must be a whole number').int();

/** Everything that the gateway reads from its environment. */
export const gatewayConfigSchema = z.object({
  ...serverConfigShape,
  PORT: serverConfigShape.PORT.default(8080),
  /** Redis that holds counters and policies. A wrong one: the gateway is `degraded` and follows each enterprise's degraded mode. */
  REDIS_URL: z.url().describe('such as redis://127.0.0.1:6379').default('redis://127.0.0.1:6379'),
  /** Whether REDIS_URL is a node of a Redis Cluster. Wrong: commands are answered MOVED and the gateway is degraded. */
  REDIS_CLUSTER: z.stringbool().default(false),
  /** First part of every key. Must be the same in all apps, or they do not see each other's counters. */
  REDIS_PREFIX: z
    .string()
    .regex(/^[\w.-]{1,32}$/)
    .default('weir'),
  /** Number of shards, fixed for the life of an installation. Another number loses all counters: it is checked at start. */
  SHARD_COUNT: count.min(1).max(100).default(defaultShardCount),
  /** Longest wait for one Redis command. Too short: needless degraded mode; too long: callers wait on a dead Redis. */
  REDIS_COMMAND_TIMEOUT_MS: milliseconds.min(5).max(5_000).default(50),
  /** Folder for what is settled while Redis is away. Not writable: the gateway does not start. Lost: so are those events. */
  SPOOL_DIR: z.string().min(1).default('.weir/spool'),
  /** Opens the upstreams' sealed API keys. Must be the admin API's key; else calls fail with `upstream_error`. */
  WEIR_SECRET_KEY: z.string().describe('32 bytes in base64, as from: openssl rand -base64 32'),
  /** Where GET /v1/usage is forwarded to. Unset, that route answers 503. */
  ADMIN_API_URL: z.url().optional(),
  /** The page that explains the error codes to tenants, each under its code (`#insufficient_quota`); errors link there. Unset: no link. */
  DOCS_URL: z.url({ protocol: /^https?$/, error: 'must be an http or https address' }).optional(),
  /** Whether upstreams may have private addresses (10/8, 192.168/16, loopback ...). True lets an admin reach your internal network through the gateway. */
  UPSTREAM_ALLOW_PRIVATE: z.stringbool().default(false),
  /** Whether the number of calls at an upstream follows its time to the first token. Off: only UPSTREAM_CONNECTIONS_MAX bounds it. */
  ADAPTIVE_CONCURRENCY: z.stringbool().default(false),
  /** Connections per upstream. Too few: calls wait for one; each costs a file descriptor here and there. */
  UPSTREAM_CONNECTIONS_MAX: count.min(1).max(10_000).default(512),
  /** Calls in flight in this process; more are answered 503. Bounds memory. At most half of them may wait for a limit. */
  CALLS_IN_FLIGHT_MAX: count.min(1).max(100_000).default(4_000),
  /** Largest request body. Larger ones are answered 413. */
  BODY_LIMIT_BYTES: bytes
    .min(1_024)
    .max(256 * 1024 * 1024)
    .default(16 * 1024 * 1024),
  /** Largest answer that is not streamed. Larger ones are cut with `upstream_error`, and charged. */
  ANSWER_LIMIT_BYTES: bytes
    .min(1_024)
    .max(1024 * 1024 * 1024)
    .default(64 * 1024 * 1024),
  /** Largest sum of header lines of a request. Larger ones are answered 431. */
  HEADER_LIMIT_BYTES: bytes
    .min(1_024)
    .max(256 * 1024)
    .default(16 * 1024),
  /** A streaming client that takes nothing for this long has gone. */
  CLIENT_STALL_MS: milliseconds.min(100).max(600_000).default(60_000),
  /** How long a stream whose client has left is read on for its usage, where the upstream's policy is `drain`. */
  DRAIN_MS_MAX: milliseconds.min(0).max(600_000).default(60_000),
  /** How many streams may be drained at once; further ones are aborted. */
  DRAINS_MAX: count.min(0).max(10_000).default(200),
  /** Pause after which a waiting stream gets an SSE comment, so that proxies keep it open. */
  STREAM_KEEP_ALIVE_MS: milliseconds.min(50).max(600_000).default(15_000),
  /** A stream that waits longer than this for a limit is told so in SSE comments; its status is 200 from then on, whatever comes. */
  WAIT_NOTICE_AFTER_MS: milliseconds.min(50).max(60_000).default(2_000),
  /** Pause between two of those comments. */
  WAIT_NOTICE_EVERY_MS: milliseconds.min(50).max(60_000).default(3_000),
});
export type GatewayConfig = z.output<typeof gatewayConfigSchema>;
