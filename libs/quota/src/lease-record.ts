import type { UsageEventDraft } from '@weir/domain';
import { fromLimbs, limbsOf, limbsOfCount, unpackDoubles } from './limbs.js';
import { unpackList } from './msgpack.js';
import type { Observed, Reservation } from './quota-engine.js';

/** A lease record as the scripts keep it. Layout: lua/includes/lease.lua. */
export type LeaseRecord = {
  readonly expiresAtMs: number;
  readonly observed: Observed | null;
  readonly reservedAtMs: number;
  readonly reserved: Reservation;
  /** The enterprise's month of the reservation. */
  readonly periodId: string;
  readonly draft: UsageEventDraft;
};

const doubles = 19;
const headerBytes = 1 + doubles * 8 + 4;

/**
 * The record of a new lease, ready to be kept but for its instants, which are the store's: admit sets them.
 *
 * @param descriptor which fields are charged (the plan's)
 * @param draft JSON of the event draft
 */
export function packNewLease(
  leaseMs: number,
  reserve: Reservation,
  descriptor: Buffer,
  draft: string,
): Buffer {
  const draftAt = headerBytes + descriptor.length;
  const record = Buffer.allocUnsafe(draftAt + Buffer.byteLength(draft));
  record[0] = 0x52; /* R */
  [
    ...[0, 0], // reserved at, expires at
    ...[0, 0, 0, 0, 0], // nothing is observed
    leaseMs,
    reserve.windowInputTokens,
    reserve.windowOutputTokens,
    ...[0, 0, 0], // nothing is extended
    ...limbsOfCount(reserve.budgetInputTokens),
    ...limbsOfCount(reserve.budgetOutputTokens),
    ...limbsOf(reserve.costNano),
  ].forEach((number, index) => record.writeDoubleLE(number, 1 + index * 8));
  record.writeUInt32LE(descriptor.length, headerBytes - 4);
  descriptor.copy(record, headerBytes);
  record.write(draft, draftAt);
  return record;
}

/** Null when the lease has ended: what is left of it is a tombstone. */
export function readLeaseRecord(record: Buffer): LeaseRecord | null {
  if (record[0] !== 0x52 /* R */) return null;
  const at = unpackDoubles(record.subarray(0, 1 + doubles * 8), 1);
  const value = (number: number): number => at[number - 1] ?? 0;
  const descriptorEnd = headerBytes + record.readUInt32LE(headerBytes - 4);
  return {
    reservedAtMs: value(1),
    expiresAtMs: value(2),
    observed:
      value(3) === 1
        ? {
            inputTokens: value(4),
            outputTokens: value(5),
            costNano: fromLimbs(value(6), value(7)),
          }
        : null,
    reserved: {
      windowInputTokens: value(9),
      windowOutputTokens: value(10) + value(11),
      budgetInputTokens: Number(fromLimbs(value(14), value(15))),
      budgetOutputTokens: Number(fromLimbs(value(16), value(17))),
      costNano: fromLimbs(value(18), value(19)),
    },
    periodId: monthOf(unpackList(record.subarray(headerBytes, descriptorEnd))),
    draft: JSON.parse(record.toString('utf8', descriptorEnd)) as UsageEventDraft,
  };
}

/** The first calendar field of the first scope is the month's. */
function monthOf(descriptor: readonly (string | number)[]): string {
  return String(descriptor[5 + Number(descriptor[2])]);
}
