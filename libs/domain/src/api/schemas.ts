import { z } from 'zod';
import { limitModes, metrics, calendarWindows, slidingWindows } from '../limits.js';
import {
  dialects,
  enterpriseSettingsFields,
  enterpriseSettingsSchema,
  modelKinds,
  queueSettingsSchema,
} from '../policy.js';
import { permissions, roles } from '../roles.js';
import { scopeLevels } from '../scopes.js';
import { tokenKinds } from '../token-usage.js';

/** Shapes of the admin API. Money and counts are decimal texts: JSON numbers would round them. */

export const id = z.uuid();
export const instant = z.iso.datetime();
/** Decimal text of currency units, exact, such as `12.50`. */
export const moneyText = z.string().regex(/^-?\d+(\.\d{1,12})?$/);
export const countText = z.string().regex(/^-?\d+$/);
/** In the metric's unit as a person writes it: currency units for cost, whole numbers for the rest. null: no own limit. "0": block. */
export const amountText = z
  .string()
  .regex(
    /^\d{1,19}(\.\d{1,9})?$/,
    'must be a number that is not negative, such as 1500000 or 12.50',
  )
  .nullable();
const name = z.string().trim().min(1, 'must not be empty').max(120);
const version = z.int().min(1);

export const signInBody = z.strictObject({
  email: z.email().max(200),
  password: z.string().min(1).max(200),
});
export const meSchema = z.strictObject({
  user: z.strictObject({
    id,
    name: z.string(),
    email: z.string(),
    role: z.enum(roles),
    departmentId: id,
  }),
  enterprise: z.strictObject({ id, name: z.string(), timeZone: z.string(), currency: z.string() }),
  permissions: z.array(z.enum(permissions)),
  /** Send it as `x-csrf-token` with every request that changes something. */
  csrfToken: z.string(),
});

export const limitSchema = z.strictObject({
  id,
  scopeLevel: z.enum(scopeLevels),
  scopeId: id,
  metric: z.enum(metrics),
  window: z.enum([...slidingWindows, ...calendarWindows]).nullable(),
  model: z.string().nullable(),
  amount: amountText,
  mode: z.enum(limitModes),
  version,
});
export const limitCreateBody = limitSchema.omit({ id: true, version: true, mode: true }).extend({
  model: z.string().min(1).nullable().default(null),
  mode: z.enum(limitModes).default('hard'),
});
export const limitPatchBody = z.strictObject({
  amount: amountText.optional(),
  mode: z.enum(limitModes).optional(),
});

/** Use of one limit now, from the live counters. `used` and `reserved` are null while the counters cannot be read: unknown is not 0. */
export const limitUseSchema = limitSchema.extend({
  used: amountText,
  reserved: amountText,
  resetsAt: instant.nullable(),
});

export const monthUseSchema = z.strictObject({
  periodId: z.string(),
  requests: countText,
  tokens: countText,
  cost: moneyText,
  reservedTokens: countText,
  reservedCost: moneyText,
  inFlight: z.int(),
});

export const nodeSchema = z.strictObject({
  id,
  level: z.enum(['enterprise', 'department', 'user', 'key']),
  parentId: id.nullable(),
  name: z.string(),
  status: z.enum(['active', 'disabled', 'deleted']),
  /** The node's month to date and the use of its own limits; null while the counters cannot be read. */
  month: monthUseSchema.nullable(),
  limits: z.array(limitUseSchema),
  version,
});

export const organisationSchema = z.strictObject({
  enterprise: z.strictObject({ id, name: z.string(), timeZone: z.string(), currency: z.string() }),
  /** All nodes that the caller may see, parents before children, siblings by name. Keys are left out: see /keys. */
  nodes: z.array(nodeSchema),
  /** Counters come from Redis and are live; false while it is away. */
  live: z.boolean(),
  at: instant,
});

export const nodeDetailSchema = nodeSchema.extend({
  /** Limits of the nodes above that apply too, nearest first. */
  alsoLimitedBy: z.array(
    z.strictObject({
      level: z.enum(scopeLevels),
      id,
      name: z.string(),
      limits: z.array(limitUseSchema),
    }),
  ),
});

export const departmentSchema = z.strictObject({
  id,
  parentId: id.nullable(),
  name: z.string(),
  costCenter: z.string().nullable(),
  status: z.enum(['active', 'disabled', 'deleted']),
  version,
});
export const departmentCreateBody = z.strictObject({
  name,
  parentId: id.nullable().default(null),
  costCenter: z.string().max(60).nullable().default(null),
});
export const departmentPatchBody = z.strictObject({
  name: name.optional(),
  parentId: id.nullable().optional(),
  costCenter: z.string().max(60).nullable().optional(),
  status: z.enum(['active', 'disabled']).optional(),
});

export const userSchema = z.strictObject({
  id,
  departmentId: id,
  kind: z.enum(['person', 'service']),
  name: z.string(),
  email: z.string().nullable(),
  role: z.enum(roles),
  status: z.enum(['active', 'disabled', 'deleted']),
  version,
});
export const userCreateBody = z.strictObject({
  departmentId: id,
  kind: z.enum(['person', 'service']).default('person'),
  name,
  email: z.email().max(200).nullable().default(null),
  role: z.enum(roles).default('member'),
  /** Only people with a password can sign in. */
  password: z
    .string()
    .min(12, 'must have at least 12 characters')
    .max(200)
    .nullable()
    .default(null),
});
export const userPatchBody = z.strictObject({
  departmentId: id.optional(),
  name: name.optional(),
  email: z.email().max(200).nullable().optional(),
  role: z.enum(roles).optional(),
  password: z.string().min(12).max(200).optional(),
  status: z.enum(['active', 'disabled']).optional(),
});

export const keySchema = z.strictObject({
  id,
  userId: id,
  userName: z.string(),
  departmentId: id,
  departmentName: z.string(),
  name: z.string(),
  prefix: z.string(),
  status: z.enum(['active', 'disabled', 'deleted']),
  allowedModels: z.array(z.string()).nullable(),
  expiresAt: instant.nullable(),
  createdAt: instant,
  version,
});
export const keyCreateBody = z.strictObject({
  userId: id,
  name,
  allowedModels: z.array(z.string().min(1)).max(200).nullable().default(null),
  expiresAt: instant.nullable().default(null),
});
export const keyPatchBody = z.strictObject({
  name: name.optional(),
  status: z.enum(['active', 'disabled']).optional(),
  allowedModels: z.array(z.string().min(1)).max(200).nullable().optional(),
  expiresAt: instant.nullable().optional(),
});
/** The only answer that ever carries a key's secret. */
export const keyCreatedSchema = z.strictObject({ key: keySchema, secret: z.string() });

export const upstreamSchema = z.strictObject({
  id,
  name: z.string(),
  dialect: z.enum(dialects),
  baseUrl: z.string(),
  /** Whether an API key is stored; it is never shown. */
  hasApiKey: z.boolean(),
  connectTimeoutMs: z.int(),
  firstByteTimeoutMs: z.int(),
  idleTimeoutMs: z.int(),
  onClientGone: z.enum(['drain', 'abort']),
  enabled: z.boolean(),
  version,
});
export const upstreamCreateBody = z.strictObject({
  name,
  dialect: z.enum(dialects).default('openai'),
  baseUrl: z.url({
    protocol: /^https?$/,
    error: 'must be an http(s) address such as https://api.openai.com/v1',
  }),
  apiKey: z.string().min(1).max(500).nullable().default(null),
  onClientGone: z.enum(['drain', 'abort']).default('drain'),
});
export const upstreamPatchBody = z.strictObject({
  name: name.optional(),
  baseUrl: z.url({ protocol: /^https?$/ }).optional(),
  apiKey: z.string().min(1).max(500).nullable().optional(),
  connectTimeoutMs: z.int().min(100).max(60_000).optional(),
  firstByteTimeoutMs: z.int().min(100).max(1_800_000).optional(),
  idleTimeoutMs: z.int().min(100).max(1_800_000).optional(),
  onClientGone: z.enum(['drain', 'abort']).optional(),
  enabled: z.boolean().optional(),
});

/** Per million tokens, decimal text of currency units with up to six decimals. */
const perMillion = z
  .string()
  .regex(
    /^\d{1,12}(\.\d{1,6})?$/,
    'must be a price per million tokens such as 2.50, at most six decimals',
  );
export const priceSchema = z.strictObject({
  id,
  currency: z.string(),
  from: instant,
  to: instant.nullable(),
  perMillionTokens: z.partialRecord(z.enum(tokenKinds), perMillion),
  perRequest: z.string().regex(/^\d{1,12}(\.\d{1,12})?$/),
});
export const priceCreateBody = z.strictObject({
  /** When it takes effect; null: now. Never in the past: history is not repriced. */
  from: instant.nullable().default(null),
  perMillionTokens: priceSchema.shape.perMillionTokens,
  perRequest: priceSchema.shape.perRequest.default('0'),
});
const routeSchema = z.strictObject({
  upstreamId: id,
  upstreamModel: z.string().min(1).max(200),
  weight: z.int().min(0).max(1000).default(100),
  priority: z.int().min(0).max(100).default(0),
});
export const modelSchema = z.strictObject({
  id,
  alias: z.string(),
  kind: z.enum(modelKinds),
  dialect: z.enum(dialects),
  contextWindowTokens: z.int(),
  maxOutputTokens: z.int(),
  defaultOutputReserve: z.int(),
  enabled: z.boolean(),
  routes: z.array(routeSchema),
  prices: z.array(priceSchema),
  version,
});
export const modelCreateBody = z.strictObject({
  alias: z.string().regex(/^[\w.:/@-]{1,128}$/, 'may have letters, digits and . : / @ - _'),
  kind: z.enum(modelKinds).default('chat'),
  dialect: z.enum(dialects).default('openai'),
  contextWindowTokens: z.int().min(1),
  maxOutputTokens: z.int().min(1),
  defaultOutputReserve: z.int().min(1).default(1024),
  routes: z.array(routeSchema).min(1),
  price: priceCreateBody,
});
export const modelPatchBody = z.strictObject({
  contextWindowTokens: z.int().min(1).optional(),
  maxOutputTokens: z.int().min(1).optional(),
  defaultOutputReserve: z.int().min(1).optional(),
  routes: z.array(routeSchema).min(1).optional(),
  enabled: z.boolean().optional(),
});

export const usageGroupings = ['none', 'department', 'user', 'key', 'model', 'provider'] as const;
export const usageGranularities = ['none', 'hour', 'day', 'month'] as const;
/** `from` inclusive and `to` exclusive, local dates of the enterprise's zone. */
export const usageFilterShape = {
  from: z.iso.date(),
  to: z.iso.date(),
  /** The department with all below it. */
  departmentId: id.optional(),
  userId: id.optional(),
  keyId: id.optional(),
  model: z.string().optional(),
};
export const usageQuery = z.strictObject({
  ...usageFilterShape,
  groupBy: z.enum(usageGroupings).default('none'),
  granularity: z.enum(usageGranularities).default('none'),
});
const usageFigures = {
  requests: countText,
  inputTokens: countText,
  cachedInputTokens: countText,
  outputTokens: countText,
  tokens: countText,
  cost: moneyText,
};
export const usageReportSchema = z.strictObject({
  timeZone: z.string(),
  currency: z.string(),
  from: instant,
  to: instant,
  rows: z.array(
    z.strictObject({
      /** The group's id (or model alias), null without grouping. */
      groupId: z.string().nullable(),
      groupName: z.string().nullable(),
      /** The node no longer exists; its name is kept. */
      deleted: z.boolean(),
      /** Local start of the hour, day or month such as `2026-11-29` or `2026-11-29T13:00`; null without granularity. */
      period: z.string().nullable(),
      ...usageFigures,
    }),
  ),
  /** Over the whole filter, whatever the rows. */
  totals: z.strictObject(usageFigures),
  /** All calls that had ended by this instant are in the figures; null when nothing was booked yet. */
  completeUpTo: instant.nullable(),
});

export const exportCreateBody = z.strictObject({
  kind: z.literal('usage-csv'),
  profile: z.enum(['excel', 'machine']).default('excel'),
  ...usageFilterShape,
});
export const exportSchema = z.strictObject({
  id,
  kind: z.string(),
  profile: z.string(),
  request: z.record(z.string(), z.unknown()),
  status: z.enum(['queued', 'running', 'done', 'failed', 'cancelled']),
  rowsDone: countText,
  rowsTotal: countText.nullable(),
  /** Σ of the cost column, exact. */
  totalCost: moneyText.nullable(),
  completeUpTo: instant.nullable(),
  fileName: z.string().nullable(),
  fileSha256: z.string().nullable(),
  failure: z.string().nullable(),
  requestedBy: z.string(),
  createdAt: instant,
  finishedAt: instant.nullable(),
});

export const auditEntrySchema = z.strictObject({
  id,
  at: instant,
  actorName: z.string(),
  requestId: z.string(),
  action: z.string(),
  targetType: z.string(),
  targetId: z.string(),
  targetName: z.string(),
  before: z.unknown(),
  after: z.unknown(),
});

export const meteringStatusSchema = z.strictObject({
  completeUpTo: instant.nullable(),
  /** Events charged but not booked yet. */
  lagEvents: countText,
  holes: z.array(
    z.strictObject({ shard: z.int(), epoch: z.string(), fromSeq: countText, toSeq: countText }),
  ),
  deadLetters: z.int(),
  conflicts: z.int(),
  alarms: z.array(z.strictObject({ kind: z.string(), subject: z.string(), raisedAt: instant })),
});

export const reconciliationSchema = z.strictObject({
  periodId: z.string(),
  at: instant,
  balanced: z.boolean(),
  scopes: z.array(
    z.strictObject({
      level: z.enum(scopeLevels),
      id,
      name: z.string(),
      counter: z.strictObject({ requests: countText, tokens: countText, cost: moneyText }),
      ledger: z.strictObject({ requests: countText, tokens: countText, cost: moneyText }),
      rollup: z.strictObject({ requests: countText, tokens: countText, cost: moneyText }),
      /** counter − ledger, of cost. */
      difference: moneyText,
    }),
  ),
  metering: meteringStatusSchema,
});

const figures = z.strictObject({
  requests: countText,
  inputTokens: countText,
  outputTokens: countText,
  cost: moneyText,
});
export const reconcileRunSchema = z.strictObject({
  id,
  periodId: z.string(),
  at: instant,
  scopes: z.int(),
  drifted: z.int(),
  /** Nothing was under way: only then a difference means something. */
  settled: z.boolean(),
  /** The first 100 scopes that differ: counter − ledger, and roll-up − ledger. */
  drifts: z.array(
    z.strictObject({ scopeId: id, level: z.enum(scopeLevels), counter: figures, rollup: figures }),
  ),
});
export const counterRepairSchema = z.strictObject({
  /** null: the counter agreed with the ledger, nothing was changed. */
  repairId: id.nullable(),
  scopeId: id,
  periodId: z.string(),
  before: figures,
  after: figures,
});
const reason = z.string().trim().min(1, 'must not be empty').max(500);
export const counterRepairBody = z.strictObject({ scopeId: id, reason });

/** Characters of a provider's file. */
const providerFileMax = 5_000_000;
export const providerFileBody = z.strictObject({
  upstreamId: id,
  dialect: z.enum(['openai', 'anthropic']),
  fileName: z.string().trim().min(1, 'must not be empty').max(200),
  /** The file as text: CSV or JSON. */
  content: z.string().min(1, 'must not be empty').max(providerFileMax),
});
export const providerFileSchema = z.strictObject({
  id,
  upstreamId: id,
  dialect: z.enum(['openai', 'anthropic']),
  fileName: z.string(),
  sha256: z.string(),
  lines: z.int(),
  createdAt: instant,
});
const matchFigures = z.strictObject({
  /** null: the file does not count them. */
  requests: countText.nullable(),
  inputTokens: countText,
  cachedTokens: countText,
  outputTokens: countText,
});
const matchItem = z.strictObject({
  /** null: the file names no calls, so that buckets of time and model are compared. */
  requestId: z.string().nullable(),
  model: z.string(),
  startsAt: instant.nullable(),
  endsAt: instant.nullable(),
});
export const providerMatchSchema = z.strictObject({
  matched: z.int(),
  differing: z.array(matchItem.extend({ theirs: matchFigures, ours: matchFigures })),
  /** The provider bills it, and the books do not have it. */
  onlyTheirs: z.array(matchItem.extend({ theirs: matchFigures })),
  /** The books have it, and the provider does not bill it. */
  onlyOurs: z.array(matchItem.extend({ ours: matchFigures })),
  truncated: z.boolean(),
});

export const deadLetterSchema = z.strictObject({
  id,
  at: instant,
  topic: z.string(),
  partition: z.int(),
  offset: countText,
  reason: z.string(),
  replayedAt: instant.nullable(),
  /** The record as it came, cut after 20,000 characters. */
  value: z.string(),
});
export const deadLetterReplaySchema = z.strictObject({ booked: z.boolean() });

const sequenceNumber = z.int().min(1);
export const holeAcceptBody = z.strictObject({
  shard: z.int().min(0),
  epoch: z.string().min(1).max(64),
  fromSeq: sequenceNumber,
  toSeq: sequenceNumber,
  reason,
});

export const requestDetailSchema = z.strictObject({
  requestId: z.string(),
  attempts: z.array(
    z.strictObject({
      eventId: id,
      at: instant,
      department: z.string(),
      user: z.string(),
      key: z.string(),
      model: z.string(),
      provider: z.string(),
      route: z.string(),
      status: z.string(),
      estimated: z.boolean(),
      late: z.boolean(),
      inputTokens: countText,
      outputTokens: countText,
      cost: moneyText,
      startedAt: instant,
      firstTokenAt: instant.nullable(),
      endedAt: instant,
    }),
  ),
  refusals: z.array(
    z.strictObject({
      at: instant,
      outcome: z.string(),
      code: z.string(),
      scopeLevel: z.string().nullable(),
      scopeName: z.string().nullable(),
      metric: z.string().nullable(),
    }),
  ),
});

export const enterpriseSchema = z.strictObject({
  id,
  name: z.string(),
  timeZone: z.string(),
  currency: z.string(),
  settings: enterpriseSettingsSchema,
  version,
});
export const enterprisePatchBody = z.strictObject({
  name: name.optional(),
  settings: enterpriseSettingsFields
    .extend({ queue: queueSettingsSchema.partial() })
    .partial()
    .optional(),
});

export const apiErrorSchema = z.strictObject({
  error: z.strictObject({
    code: z.string(),
    message: z.string(),
    /** Faults by field for `validation_failed`; the current row for `version_conflict`. */
    details: z.record(z.string(), z.unknown()),
    requestId: z.string(),
  }),
});
