import { defaultShardCount } from '@weir/domain';
import { SecretBox, serverConfigShape } from '@weir/platform';
import { z } from 'zod';

const count = z.coerce.number('must be a whole number').int();
const seconds = z.coerce.number('must be seconds').int();
const milliseconds = z.coerce.number('must be milliseconds').int();

const secretKey = z
  .string()
  .refine(isSecretKey, 'must be 32 bytes in base64, as from: openssl rand -base64 32')
  .describe('32 bytes in base64, as from: openssl rand -base64 32');

function isSecretKey(text: string): boolean {
  try {
    SecretBox.fromSetting(text);
    return true;
  } catch {
    return false;
  }
}

/** What the control plane needs, with or without a server around it. */
export const controlConfigShape = {
  /** The books and the control plane. A wrong one: the process is not ready and every route answers 5xx. */
  DATABASE_URL: z
    .url({
      protocol: /^postgres(ql)?$/,
      error: 'must be postgresql://user:password@host:port/name',
    })
    .describe('postgresql://user:password@host:port/name'),
  /** Most database connections of this process. Too few: requests wait; the server allows 100 in all unless changed. */
  DATABASE_POOL_MAX: count.min(2).max(200).default(10),
  /** Redis that holds counters and policies. A wrong one: changes are saved but not in force, and no live figures are shown. */
  REDIS_URL: z.url().describe('such as redis://127.0.0.1:6379').default('redis://127.0.0.1:6379'),
  /** Whether REDIS_URL is a node of a Redis Cluster. Wrong: commands are answered MOVED, as if Redis were away. */
  REDIS_CLUSTER: z.stringbool().default(false),
  /** First part of every key. Must be the same in all apps, or the gateways do not see what is published. */
  REDIS_PREFIX: z
    .string()
    .regex(/^[\w.-]{1,32}$/, 'may have letters, digits and . _ -')
    .default('weir'),
  /** Number of shards, fixed for the life of an installation. Another number publishes to where no gateway looks. */
  SHARD_COUNT: count.min(1).max(100).default(defaultShardCount),
  /** Seals the upstreams' API keys. Lost, they must be entered again; the gateways need the same. */
  WEIR_SECRET_KEY: secretKey,
  /** Whether upstreams may have private addresses (10/8, 192.168/16, loopback ...). True lets an admin reach your internal network through the gateway. */
  UPSTREAM_ALLOW_PRIVATE: z.stringbool().default(false),
  /** Longest wait for live counters. Too short: the console shows none; too long: its pages wait on a dead Redis. */
  LIVE_TIMEOUT_MS: milliseconds.min(50).max(5_000).default(200),
  /** Longest wait for Redis to take a published policy; then it is tried again every second. */
  PUBLISH_TIMEOUT_MS: milliseconds.min(100).max(30_000).default(2_000),
} as const;

/** Everything that the admin API reads from its environment. */
export const adminConfigSchema = z.object({
  ...serverConfigShape,
  PORT: serverConfigShape.PORT.default(4001),
  ...controlConfigShape,
  /** Folder of the built console. Unset, only the API is served. */
  CONSOLE_DIR: z.string().min(1).optional(),
  /** Folder that the worker writes exports to. Another one than the worker's: downloads answer 404. */
  EXPORT_DIR: z.string().min(1).default('.weir/exports'),
  /** How long a sign-in lasts at most, and without a request. */
  SESSION_TTL: seconds
    .min(60)
    .max(30 * 86_400)
    .default(12 * 3_600),
  SESSION_IDLE_TTL: seconds
    .min(60)
    .max(30 * 86_400)
    .default(2 * 3_600),
  /** Wrong passwords in a row until the account is locked, and for how long. Too few lets anyone lock others out at will. */
  LOCKOUT_FAILURES: count.min(1).max(100).default(5),
  LOCKOUT_SECONDS: seconds.min(1).max(86_400).default(900),
  /** Sign-ins that one address may try per minute. Behind a proxy without TRUST_PROXY all users share one address. */
  SIGN_IN_RATE_PER_MINUTE: count.min(1).max(100_000).default(30),
});
export type AdminConfig = z.output<typeof adminConfigSchema>;
/** The part that the control plane's services need; the demo set-up runs them without a server. */
export type ControlConfig = z.output<z.ZodObject<typeof controlConfigShape>>;
