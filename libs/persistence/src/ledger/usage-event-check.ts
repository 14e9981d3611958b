import { tagsSchema, type UsageEvent, usageEventSchema } from '@weir/domain';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { z } from 'zod';

/**
 * The domain's schema, compiled. It says yes or no without copying the event, which costs a third of what zod's own
 * reading does; the ledger reads twenty thousand a second. Formats are left out: each has its pattern beside it.
 */
const isShapedLikeEvent = new Ajv2020({ validateFormats: false }).compile<UsageEvent>(
  z.toJSONSchema(usageEventSchema, { io: 'input' }),
);

export type CheckedEvent =
  | { readonly ok: true; readonly event: UsageEvent }
  | { readonly ok: false; readonly reason: string };

/**
 * Whether a value is a usage event, and if not, why. zod has the last word on tags, of which JSON Schema cannot say the
 * same: their number and the length of their texts.
 */
export function checkUsageEvent(value: unknown): CheckedEvent {
  if (isShapedLikeEvent(value) && tagsSchema.safeParse(value.data.tags).success) {
    return { ok: true, event: value };
  }
  const parsed = usageEventSchema.safeParse(value);
  if (parsed.success) return { ok: true, event: parsed.data };
  const [issue] = parsed.error.issues;
  return {
    ok: false,
    reason: `not a usage event: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`,
  };
}
