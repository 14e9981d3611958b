import type { Pool } from 'pg';

/** The next offset to book of each partition of a topic. Partitions of which nothing was booked are absent. */
export async function nextOffsets(pool: Pool, topic: string): Promise<ReadonlyMap<number, bigint>> {
  const { rows } = await pool.query<{ partition: number; next: string }>(
    'select partition, next_offset as next from ledger_offset where topic = $1',
    [topic],
  );
  return new Map(rows.map(({ partition, next }) => [partition, BigInt(next)]));
}
