import type { Pool } from 'pg';
import { inTransaction } from '../transaction.js';
import { isDroppedMonth } from './database-faults.js';

/** The first instant of the month (UTC) that an instant falls into, milliseconds since the Unix epoch. */
export function monthStartOf(atMs: number): number {
  const at = new Date(atMs);
  return Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), 1);
}

/** The monthly partitions of usage_event. */
export class UsagePartitions {
  private readonly known = new Set<number>();

  constructor(private readonly pool: Pool) {}

  /**
   * Makes the partitions for the instants given, where they are missing. Cheap when they are known to be there.
   *
   * @returns the months (first instants) that have none and get none, because retention has dropped them
   */
  async ensure(instantsMs: Iterable<number>): Promise<ReadonlySet<number>> {
    const months = new Set<number>();
    for (const atMs of instantsMs) months.add(monthStartOf(atMs));
    const refused = new Set<number>();
    for (const month of [...months].sort((a, b) => a - b)) {
      if (this.known.has(month)) continue;
      try {
        await this.pool.query('select weir_ensure_usage_partition($1)', [new Date(month)]);
        this.known.add(month);
      } catch (error) {
        if (!isDroppedMonth(error)) throw error;
        refused.add(month);
      }
    }
    return refused;
  }

  /** Another process may have dropped some. */
  forget(): void {
    this.known.clear();
  }
}

/**
 * Makes the partitions of this month and those ahead, so that no booking has to.
 *
 * @param monthsAhead how many months after this one
 */
export async function ensurePartitionsAhead(
  pool: Pool,
  nowMs: number,
  monthsAhead: number,
): Promise<void> {
  const now = new Date(nowMs);
  for (let ahead = 0; ahead <= monthsAhead; ahead += 1) {
    const month = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + ahead, 1));
    await pool.query('select weir_ensure_usage_partition($1)', [month]);
  }
}

/**
 * Drops the partitions of months that ended more than `keepMonths` months before this one began. Roll-ups stay.
 * Events of a dropped month that arrive later are dead-lettered: they can no longer be told from repeated ones.
 *
 * @returns the names of the partitions dropped
 */
export async function dropExpiredPartitions(
  pool: Pool,
  nowMs: number,
  keepMonths: number,
): Promise<string[]> {
  const now = new Date(nowMs);
  const firstKept = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - keepMonths, 1);
  const { rows } = await pool.query<{ name: string }>(
    `select c.relname as name from pg_inherits i
     join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'usage_event'::regclass order by 1`,
  );
  const dropped: string[] = [];
  for (const { name } of rows) {
    const match = /^usage_event_(\d{4})_(\d{2})$/.exec(name);
    if (match === null) continue;
    const month = Date.UTC(Number(match[1]), Number(match[2]) - 1, 1);
    if (month >= firstKept) continue;
    await inTransaction(pool, async (client) => {
      // Whoever waits for the table queues behind us: rather give up and come again than hold up the bookings.
      await client.query(`set local lock_timeout = '5s'`);
      await client.query('select weir_drop_usage_partition($1)', [new Date(month)]);
    });
    dropped.push(name);
  }
  return dropped;
}
