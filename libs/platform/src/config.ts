import { z } from 'zod';
import { trustedProxiesSchema } from './trusted-proxies.js';

/** One variable that cannot be used as it is, and what to do about it. Never carries the value. */
export type ConfigFault = { readonly variable: string; readonly remedy: string };

/** Every fault of the environment at once, so that an operator fixes them in one go. */
export class ConfigError extends Error {
  constructor(readonly faults: readonly ConfigFault[]) {
    const lines = faults.map(({ variable, remedy }) => `  ${variable}: ${remedy}`);
    super(`The configuration cannot be used:\n${lines.join('\n')}`);
    this.name = 'ConfigError';
  }
}

/** What every server of ours reads. Spread it into the app's schema and override the defaults there. */
export const serverConfigShape = {
  /** Address to listen on. A wrong one fails at start with EADDRNOTAVAIL. */
  HOST: z.string().min(1).default('127.0.0.1'),
  /** TCP port; 0 takes any free one. A taken one fails at start with EADDRINUSE. */
  PORT: z.coerce.number('must be a port from 0 to 65535').int().min(0).max(65_535).default(0),
  /** Least level that is logged. `trace` and `debug` cost throughput. */
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  /**
   * Which proxies' `x-forwarded-*` are believed: how many stand in front of this process (1, 2 ...), or their addresses and
   * ranges, separated by commas. Unset: none, and behind a proxy all callers have its address. Too many hops, a range with
   * strangers in it, or a number of hops where callers also reach this process past the proxies: callers can forge their
   * address.
   */
  TRUST_PROXY: trustedProxiesSchema.default(false),
  /** How long requests in flight may finish after SIGTERM. Too short cuts streams; too long delays restarts. */
  SHUTDOWN_GRACE_MS: z.coerce
    .number('must be milliseconds from 0 to 600000')
    .int()
    .min(0)
    .max(600_000)
    .default(20_000),
  /** When set, GET /metrics wants it as a bearer token. Unset, anyone who reaches the port may read the metrics. */
  METRICS_TOKEN: z.string().min(16, 'must have at least 16 characters').optional(),
} as const;

/**
 * Reads an app's settings from the environment. An empty variable counts as unset, because compose files and
 * shells turn missing ones into empty ones.
 *
 * @throws ConfigError listing every fault by variable name with the schema's message, never with the value.
 */
export function loadConfig<Schema extends z.ZodObject>(
  schema: Schema,
  env: NodeJS.ProcessEnv = process.env,
): z.output<Schema> {
  const present: Record<string, string> = {};
  for (const variable of Object.keys(schema.shape)) {
    const value = env[variable];
    if (value !== undefined && value !== '') present[variable] = value;
  }
  const result = schema.safeParse(present);
  if (result.success) return result.data;
  throw new ConfigError(
    result.error.issues.map((issue) => {
      const variable = String(issue.path[0] ?? '(several)');
      if (issue.code === 'invalid_type' && !(variable in present)) {
        return { variable, remedy: describeMissing(schema, variable) };
      }
      return { variable, remedy: withoutValue(issue.message, present[variable]) };
    }),
  );
}

function describeMissing(schema: z.ZodObject, variable: string): string {
  const field: unknown = schema.shape[variable];
  const description = field instanceof z.ZodType ? field.description : undefined;
  return description === undefined ? 'is required: set it' : `is required: set it (${description})`;
}

/** A schema's own message may quote its input; a secret must not reach a log that way. */
function withoutValue(message: string, value: string | undefined): string {
  return value === undefined || value.length < 4 ? message : message.replaceAll(value, '***');
}
