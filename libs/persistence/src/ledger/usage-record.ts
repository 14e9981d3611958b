import {
  costPicoOf,
  instantOfId,
  nanoFromPico,
  UnpricedTokenKindError,
  type UsageEvent,
} from '@weir/domain';
import { checkUsageEvent } from './usage-event-check.js';

/** One record as it came from the broker or the outbox. */
export type SourceRecord = {
  /** Kafka's offset, or a number that identifies the outbox entry. */
  readonly offset: bigint;
  readonly key: Uint8Array | null;
  readonly value: Uint8Array | null;
};

/** A record that is a usage event, with what the ledger derives from it. */
export type UsageRecord = {
  readonly source: SourceRecord;
  readonly event: UsageEvent;
  /** The instant inside the event's id, milliseconds since the Unix epoch. Decides the partition. */
  readonly mintedAtMs: number;
  /** Milliseconds since the Unix epoch. What reports and periods go by. */
  readonly reservedAtMs: number;
  readonly startedAtMs: number;
  readonly firstTokenAtMs: number | null;
  readonly endedAtMs: number;
  /** Outermost first, as in the event. */
  readonly departmentIds: readonly string[];
  /** Identity within the ledger: (enterprise, event id). Orders as PostgreSQL does. */
  readonly key: string;
};

/** Identity of an event within the ledger. */
export function rowKey(enterpriseId: string, eventId: string): string {
  return `${enterpriseId.toLowerCase()}|${eventId}`;
}

/** A record that cannot be booked, and why, in words for the person who will look at it. */
export type DeadRecord = { readonly source: SourceRecord; readonly reason: string };

export type ReadResult =
  | { readonly ok: true; readonly record: UsageRecord }
  | { readonly ok: false; readonly dead: DeadRecord };

/** What the ledger accepts, relative to its clock. Outside of it no partition is made: the record is dead-lettered. */
export type AcceptedAge = { readonly pastDays: number; readonly futureDays: number };

const dayMs = 86_400_000;
const decoder = new TextDecoder('utf-8', { fatal: true });

/**
 * Reads a record as a usage event. Never throws: whatever is wrong with a record is a reason to dead-letter it, and
 * must not stop those behind it.
 */
export function readRecord(source: SourceRecord, nowMs: number, accepted: AcceptedAge): ReadResult {
  const dead = (reason: string): ReadResult => ({ ok: false, dead: { source, reason } });
  try {
    if (source.value === null || source.value.length === 0) return dead('the record has no value');
    const text = decoder.decode(source.value);
    // PostgreSQL's texts cannot hold it, in whatever field it hides.
    if (text.includes('\\u0000')) return dead('the event contains a NUL character');
    const checked = checkUsageEvent(JSON.parse(text));
    if (!checked.ok) return dead(checked.reason);
    const { event } = checked;
    const mintedAtMs = instantOfId(event.id);
    const reservedAtMs = Date.parse(event.data.reservedAt);
    if (
      mintedAtMs < nowMs - accepted.pastDays * dayMs ||
      mintedAtMs > nowMs + accepted.futureDays * dayMs
    ) {
      const at = new Date(mintedAtMs).toISOString();
      return dead(`the event's id is of ${at}, which is outside of what the ledger accepts`);
    }
    // Rows are looked for by the reservation's instant, in the partitions from that day on.
    if (Math.abs(mintedAtMs - reservedAtMs) > dayMs && event.data.kind === 'usage') {
      return dead("the event's id and its reservation are more than a day apart");
    }
    if (event.subject !== event.data.enterprise.id) {
      return dead("the event's subject is not its enterprise");
    }
    const fault = costFault(event);
    if (fault !== null) return dead(fault);
    const { enterprise, departments, startedAt, firstTokenAt, endedAt } = event.data;
    const record: UsageRecord = {
      source,
      event,
      mintedAtMs,
      reservedAtMs,
      startedAtMs: Date.parse(startedAt),
      firstTokenAtMs: firstTokenAt === null ? null : Date.parse(firstTokenAt),
      endedAtMs: Date.parse(endedAt),
      departmentIds: departments.map(({ id }) => id),
      key: rowKey(enterprise.id, event.id),
    };
    return { ok: true, record };
  } catch (error) {
    return dead(`unreadable: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function costFault({ data }: UsageEvent): string | null {
  if (data.kind === 'adjustment') return null;
  if (data.costPico.startsWith('-') || data.costNano.startsWith('-')) {
    return 'a negative cost is for adjustments alone';
  }
  return null;
}

/**
 * Recomputes the cost from the event's own tokens and unit prices. Returns what differs, or null when all agrees.
 * A difference is for a person to look at; the event is booked with the cost that the budget was charged.
 */
export function costMismatch({ data }: UsageEvent): string | null {
  if (data.kind === 'adjustment') return null;
  const costPico = BigInt(data.costPico);
  if (nanoFromPico(costPico) !== BigInt(data.costNano)) {
    return `charged ${data.costNano} nano for ${data.costPico} pico`;
  }
  try {
    const expected = costPicoOf(data.usage, data.price);
    return expected === costPico ? null : `${data.costPico} pico, recomputed ${expected}`;
  } catch (error) {
    if (error instanceof UnpricedTokenKindError) return error.message;
    throw error;
  }
}
