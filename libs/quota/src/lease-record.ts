import type { UsageEventDraft } from '@weir/domain';
import { fromLimbs, unpackDoubles } from './limbs.js';
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

/** Null when the lease has ended: what is left of it is a tombstone. */
export function readLeaseRecord(record: Buffer): LeaseRecord | null {
  if (record[0] !== 0x52 /* R */) return null;
  const at = unpackDoubles(record.subarray(0, 1 + doubles * 8), 1);
  const value = (number: number): number => at[number - 1] ?? 0;
  const descriptorAt = 1 + doubles * 8 + 4;
  const descriptorEnd = descriptorAt + record.readUInt32LE(1 + doubles * 8);
  return {
    expiresAtMs: value(1),
    observed:
      value(2) === 1
        ? {
            inputTokens: value(3),
            outputTokens: value(4),
            costNano: fromLimbs(value(5), value(6)),
          }
        : null,
    reservedAtMs: value(7),
    reserved: {
      windowInputTokens: value(9),
      windowOutputTokens: value(10) + value(11),
      budgetInputTokens: Number(fromLimbs(value(14), value(15))),
      budgetOutputTokens: Number(fromLimbs(value(16), value(17))),
      costNano: fromLimbs(value(18), value(19)),
    },
    periodId: monthOf(unpackList(record.subarray(descriptorAt, descriptorEnd))),
    draft: JSON.parse(record.toString('utf8', descriptorEnd)) as UsageEventDraft,
  };
}

/** The first calendar field of the first scope is the month's. */
function monthOf(descriptor: readonly (string | number)[]): string {
  return String(descriptor[5 + Number(descriptor[2])]);
}
