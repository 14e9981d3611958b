import { WeirError } from '@weir/domain';
import type { Pool } from 'pg';
import { inTransaction } from '../transaction.js';
import { clearAlarm, raiseAlarms } from './alarms.js';
import { recordArrivals } from './progress-tables.js';

/** Numbers accepted at once. A larger hole is no oversight: look for the events first. */
const acceptedMax = 100_000;

/**
 * Takes missing numbers for lost, by a person's decision, so that the books can be complete again beyond them. The
 * decision stays in the list of alarms, with its reason. Should an event with such a number arrive later all the same,
 * it is booked like any other.
 *
 * @throws WeirError `invalid_request` when the range is none, or nothing of it is missing
 */
export async function acceptHole(
  pool: Pool,
  hole: {
    shard: number;
    epoch: string;
    fromSeq: number;
    toSeq: number;
    acceptedBy: string;
    reason: string;
  },
  nowMs: number,
): Promise<void> {
  const { shard, epoch, fromSeq, toSeq, acceptedBy, reason } = hole;
  const count = toSeq - fromSeq + 1;
  if (!Number.isSafeInteger(count) || fromSeq < 1 || count < 1 || count > acceptedMax) {
    throw new WeirError('invalid_request', `A hole has from 1 to ${acceptedMax} numbers.`);
  }
  await inTransaction(pool, async (client) => {
    const { rows } = await client.query<{ watermark: string; highest: string; at: Date | null }>(
      `select watermark_seq as watermark, highest_seq as highest, watermark_at as at
       from ledger_progress where shard = $1 and epoch = $2 for update`,
      [shard, epoch],
    );
    const [line] = rows;
    if (line === undefined || toSeq >= Number(line.highest) || toSeq <= Number(line.watermark)) {
      throw new WeirError('invalid_request', 'There is no such hole.');
    }
    const endedAtMs = line.at?.getTime() ?? 0;
    const arrivals = Array.from({ length: count }, (_, index) => ({
      shard,
      epoch,
      seq: fromSeq + index,
      endedAtMs,
    }));
    await recordArrivals(client, arrivals, nowMs);
    const subject = `${shard}/${epoch}/${fromSeq}-${toSeq}`;
    const details = { accepted: true, acceptedBy, reason };
    await raiseAlarms(client, [{ kind: 'sequence-hole', subject, details }], nowMs);
    await clearAlarm(client, 'sequence-hole', subject, nowMs);
  });
}
