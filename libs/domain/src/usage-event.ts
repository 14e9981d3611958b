import { z } from 'zod';
import { priceVersionSchema } from './prices.js';
import { namedRefSchema } from './scopes.js';
import { tokenUsageSchema } from './token-usage.js';

/** `cancelled`: the client left; `partial`: the upstream failed in the middle; `expired`: the lease ran out unsettled. */
export const callStatuses = ['ok', 'partial', 'error', 'cancelled', 'expired'] as const;
export type CallStatus = (typeof callStatuses)[number];

const instant = z.iso.datetime();
const signedInteger = z.string().regex(/^-?\d{1,24}$/);

/** Bounded metadata that the client sent. For grouping only, never trusted for identity. */
export const tagsSchema = z
  .record(z.string().min(1).max(64), z.string().max(256))
  .refine((tags) => Object.keys(tags).length <= 16, 'at most 16 tags');

/** What is known of a call when it is admitted; kept with the lease, so that the reaper can settle a dead gateway's call. */
export const usageEventDraftSchema = z.strictObject({
  enterprise: namedRefSchema,
  /** Outermost department first. */
  departments: z.array(namedRefSchema).min(1).max(5),
  user: namedRefSchema,
  key: namedRefSchema,
  currency: z.string(),
  modelAsked: z.string(),
  modelServed: z.string(),
  provider: namedRefSchema,
  /** Which route was called, such as `/v1/chat/completions`. */
  route: z.string(),
  streamed: z.boolean(),
  requestId: z.string(),
  attempt: z.int().min(1),
  /** The price version in force at the reservation; reserve and settle use the same one. */
  price: priceVersionSchema.pick({ id: true, picoPerToken: true, picoPerRequest: true }),
  queueWaitMs: z.int().min(0),
  tags: tagsSchema,
});
export type UsageEventDraft = z.infer<typeof usageEventDraftSchema>;

/**
 * The data of one usage event. `kind: adjustment` corrects an earlier event (named by `adjusts`), and only then
 * may cost be negative; its tokens are zero.
 */
export const usageEventDataSchema = usageEventDraftSchema.extend({
  kind: z.enum(['usage', 'adjustment']),
  adjusts: z.uuid().nullable(),
  usage: tokenUsageSchema,
  /** Exact cost, pico-currency. */
  costPico: signedInteger,
  /** What the budgets were charged: the cost rounded up to nano-currency. */
  costNano: signedInteger,
  /** The enterprise's month of the reservation, such as `2026-11`. */
  periodId: z.string().regex(/^\d{4}-\d{2}$/),
  reservedAt: instant,
  startedAt: instant,
  firstTokenAt: instant.nullable(),
  endedAt: instant,
  status: z.enum(callStatuses),
  /** The tokens are our own count, not the provider's. */
  estimated: z.boolean(),
  /** Settled after its lease had expired. */
  late: z.boolean(),
});
export type UsageEventData = z.infer<typeof usageEventDataSchema>;

/** Where the event stands in its shard's gap-free numbering. Given by the settle script, in the same step as the charge. */
export const outboxPositionSchema = z.strictObject({
  shard: z.int().min(0),
  epoch: z.string().min(1),
  seq: z.int().min(1),
});
export type OutboxPosition = z.infer<typeof outboxPositionSchema>;

export const usageEventType = 'weir.usage.v1';
export const usageTopic = 'weir.usage.v1';
export const usageDeadLetterTopic = 'weir.usage.dlq.v1';
export const refusalTopic = 'weir.refusals.v1';

/**
 * What travels through Kafka: a CloudEvents 1.0 envelope (structured JSON mode). `id` is the lease id, a UUIDv7 made
 * at the reservation; `time` is the reservation's instant.
 */
export const usageEventSchema = z.strictObject({
  specversion: z.literal('1.0'),
  id: z.uuidv7(),
  source: z.string(),
  type: z.literal(usageEventType),
  time: instant,
  subject: z.uuid(),
  datacontenttype: z.literal('application/json'),
  data: usageEventDataSchema.extend({ position: outboxPositionSchema }),
});
export type UsageEvent = z.infer<typeof usageEventSchema>;

/** What the gateway hands to settle; the script adds the position. */
export type UnnumberedUsageEvent = Omit<UsageEvent, 'data'> & { readonly data: UsageEventData };

/** Wraps a settled call's data in its envelope. */
export function usageEventOf(id: string, data: UsageEventData): UnnumberedUsageEvent {
  return {
    specversion: '1.0',
    id,
    source: 'weir/gateway',
    type: usageEventType,
    time: data.reservedAt,
    subject: data.enterprise.id,
    datacontenttype: 'application/json',
    data,
  };
}

/** A refused or failed call without a charge: for operators, never in the money path. */
export const refusalEventSchema = z.strictObject({
  id: z.uuidv7(),
  at: instant,
  requestId: z.string(),
  enterprise: namedRefSchema,
  departments: z.array(namedRefSchema),
  user: namedRefSchema,
  key: namedRefSchema,
  model: z.string(),
  route: z.string(),
  outcome: z.enum(['refused', 'failed']),
  code: z.string(),
  scope: z.strictObject({ level: z.string(), id: z.uuid(), name: z.string() }).nullable(),
  metric: z.string().nullable(),
  window: z.string().nullable(),
  retryAfterMs: z.number().nullable(),
});
export type RefusalEvent = z.infer<typeof refusalEventSchema>;
