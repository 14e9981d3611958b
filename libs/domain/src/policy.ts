import { z } from 'zod';
import { type Limit, limitDocumentSchema } from './limits.js';
import { priceVersionSchema } from './prices.js';
import type { ScopeLevel } from './scopes.js';

/**
 * Policy documents: what the control plane publishes to Redis, one per node, one per key, one per enterprise.
 * The gateway joins them per key. Postgres is the truth; all of them can be rebuilt from it.
 */

export const dialects = ['openai', 'anthropic'] as const;
/** The API shape that an upstream speaks. Nothing is translated between dialects. */
export type Dialect = (typeof dialects)[number];

export const degradedModes = ['local', 'closed', 'open'] as const;
/** What the gateway does with Redis gone: limit by itself within an exposure, refuse all, or admit all. */
export type DegradedMode = (typeof degradedModes)[number];

export const upstreamDocumentSchema = z.strictObject({
  id: z.uuid(),
  name: z.string().min(1),
  dialect: z.enum(dialects),
  /** Such as `https://api.openai.com/v1`, without a trailing slash. */
  baseUrl: z.url(),
  /** The upstream's API key, sealed with AES-256-GCM; null where it needs none. */
  sealedApiKey: z.string().nullable(),
  /** Longest wait for a connection, the first byte and between two bytes. */
  connectTimeoutMs: z.int().min(100).max(60_000),
  firstByteTimeoutMs: z.int().min(100).max(1_800_000),
  idleTimeoutMs: z.int().min(100).max(1_800_000),
  /** What to do when the client leaves a stream: read on to the usage, or stop the upstream. */
  onClientGone: z.enum(['drain', 'abort']),
  enabled: z.boolean(),
});
export type UpstreamDocument = z.infer<typeof upstreamDocumentSchema>;

export const modelKinds = ['chat', 'embedding'] as const;

export const modelDocumentSchema = z.strictObject({
  /** What tenants write as `model`. */
  alias: z.string().min(1).max(128),
  kind: z.enum(modelKinds),
  dialect: z.enum(dialects),
  contextWindowTokens: z.int().min(1),
  /** The model's own ceiling on output tokens. */
  maxOutputTokens: z.int().min(1),
  /** Reserved for output where the caller sets no cap. */
  defaultOutputReserve: z.int().min(1),
  /** Tried in order of `priority` (low first); equal priorities share by `weight`. */
  routes: z.array(
    z.strictObject({
      upstreamId: z.uuid(),
      upstreamModel: z.string().min(1),
      weight: z.int().min(0).max(1000),
      priority: z.int().min(0).max(100),
    }),
  ),
  /** Versions in force now or later, oldest first, never overlapping. */
  prices: z.array(priceVersionSchema),
  enabled: z.boolean(),
});
export type ModelDocument = z.infer<typeof modelDocumentSchema>;

/** Entries of one list of addresses; a longer list belongs into a firewall. */
export const ipRulesMax = 200;

const ipRuleSchema = z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()], {
  error: 'must be an IP address such as 203.0.113.7 or 2001:db8::1, or a range such as 10.0.0.0/8',
});

/** From where keys may be used. An IPv4-mapped IPv6 address (`::ffff:10.0.0.1`) counts as the IPv4 address in it. */
export const ipRulesSchema = z.strictObject({
  /** Addresses and ranges (CIDR) that may call; empty for all. */
  allow: z.array(ipRuleSchema).max(ipRulesMax),
  /** Addresses and ranges that may not, even where `allow` has them. */
  deny: z.array(ipRuleSchema).max(ipRulesMax),
});
export type IpRules = z.infer<typeof ipRulesSchema>;

/** Whether calls wait that nothing but a rate or concurrency limit refuses. Budgets never wait. */
export const queueSettingsSchema = z.strictObject({
  /** Longest wait; 0 refuses at once. */
  maxWaitMs: z.int().min(0).max(60_000),
  /** Calls of the enterprise that may wait in one gateway; further ones are refused at once. */
  maxWaiting: z.int().min(0).max(10_000),
  /**
   * Whether streams that wait are told their position and the expected wait in SSE comments. Their status is 200 from the
   * first comment on: a refusal after that is an error event in the stream.
   */
  streamNotices: z.boolean(),
});
export type QueueSettings = z.infer<typeof queueSettingsSchema>;

/** The settings without defaults: what a change of some of them is made of, so that what it leaves out stays as it is. */
export const enterpriseSettingsFields = z.strictObject({
  /** Share (percent) of a caller's output cap that sliding token windows reserve. */
  windowOutputReservePercent: z.int().min(0).max(100),
  /** What to do when a budget covers the prompt but not the whole cap. */
  onCapBeyondBudget: z.enum(['refuse', 'clamp']),
  degradedMode: z.enum(degradedModes),
  /** Share (percent) of the last known remainder of a budget that all gateways together may spend while degraded. */
  degradedBudgetSharePercent: z.int().min(0).max(100),
  /** How long a call without a sign of life keeps its reservation. */
  leaseMs: z.int().min(5_000).max(600_000),
  ipRules: ipRulesSchema,
  queue: queueSettingsSchema,
});

const noQueue: QueueSettings = { maxWaitMs: 0, maxWaiting: 100, streamNotices: true };

/** The settings as they are stored. Fields that came later have a default, for what was stored before them. */
export const enterpriseSettingsSchema = enterpriseSettingsFields.extend({
  ipRules: ipRulesSchema.default({ allow: [], deny: [] }),
  queue: queueSettingsSchema
    .extend({ streamNotices: z.boolean().default(noQueue.streamNotices) })
    .default(noQueue),
});
export type EnterpriseSettings = z.infer<typeof enterpriseSettingsSchema>;

export const defaultEnterpriseSettings: EnterpriseSettings = Object.freeze({
  windowOutputReservePercent: 50,
  onCapBeyondBudget: 'refuse',
  degradedMode: 'local',
  degradedBudgetSharePercent: 10,
  leaseMs: 60_000,
  ipRules: { allow: [], deny: [] },
  queue: noQueue,
});

export const enterpriseDocumentSchema = z.strictObject({
  id: z.uuid(),
  name: z.string(),
  timeZone: z.string(),
  currency: z.string().regex(/^[A-Z]{3}$/),
  settings: enterpriseSettingsSchema,
  limits: z.array(limitDocumentSchema),
  upstreams: z.array(upstreamDocumentSchema),
  models: z.array(modelDocumentSchema),
});
export type EnterpriseDocument = z.infer<typeof enterpriseDocumentSchema>;

/** A department or a user. */
export const nodeDocumentSchema = z.strictObject({
  id: z.uuid(),
  level: z.enum(['department', 'user']),
  /** The department above; null for a department directly under the enterprise. Users always have one. */
  parentId: z.uuid().nullable(),
  name: z.string(),
  status: z.enum(['active', 'disabled']),
  limits: z.array(limitDocumentSchema),
});
export type NodeDocument = z.infer<typeof nodeDocumentSchema>;

export const keyStatuses = ['active', 'disabled', 'deleted'] as const;

export const keyDocumentSchema = z.strictObject({
  id: z.uuid(),
  enterpriseId: z.uuid(),
  userId: z.uuid(),
  name: z.string(),
  /** Lower-case hex SHA-256 of the secret. The secret itself is stored nowhere. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  status: z.enum(keyStatuses),
  expiresAt: z.iso.datetime().nullable(),
  /** Model aliases this key may use; null for all. */
  allowedModels: z.array(z.string()).nullable(),
  limits: z.array(limitDocumentSchema),
});
export type KeyDocument = z.infer<typeof keyDocumentSchema>;

/** One scope on a caller's path with its own limits. */
export type PolicyScope = {
  readonly level: ScopeLevel;
  readonly id: string;
  readonly name: string;
  readonly limits: readonly Limit[];
};

/** All that the gateway needs to serve one key, joined from the documents. */
export type CallerPolicy = {
  /** The enterprise's policy version that these documents belong to. */
  readonly version: number;
  readonly shard: number;
  readonly enterprise: Omit<EnterpriseDocument, 'limits' | 'upstreams' | 'models'>;
  readonly key: Omit<KeyDocument, 'limits'>;
  /** Enterprise first, key last. */
  readonly path: readonly PolicyScope[];
  /** Whether the key, its user and all departments above are active. */
  readonly active: boolean;
  readonly models: ReadonlyMap<string, ModelDocument>;
  readonly upstreams: ReadonlyMap<string, UpstreamDocument>;
};
