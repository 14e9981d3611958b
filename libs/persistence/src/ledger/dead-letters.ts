import { newId } from '@weir/domain';
import type { Pool, PoolClient } from 'pg';
import { plainArray, textArray } from './array-literal.js';
import type { DeadRecord } from './usage-record.js';

const hex = (bytes: Uint8Array | null): string | null =>
  bytes === null ? null : `\\x${Buffer.from(bytes).toString('hex')}`;

/** Stores what could not be booked, byte for byte. The same record again changes nothing but the reason. */
export async function storeDeadLetters(
  client: PoolClient,
  at: { topic: string; partition: number },
  records: readonly DeadRecord[],
  nowMs: number,
): Promise<void> {
  if (records.length === 0) return;
  await client.query(
    `insert into dead_letter (id, topic, partition, "offset", key, value, reason, at)
     select id, $1, $2, "offset", key, value, reason, $8
     from unnest($3::uuid[], $4::bigint[], $5::bytea[], $6::bytea[], $7::text[])
       as u (id, "offset", key, value, reason)
     on conflict (topic, partition, "offset") do update set reason = excluded.reason`,
    [
      at.topic,
      at.partition,
      plainArray(records.map(() => newId(nowMs))),
      plainArray(records.map(({ source }) => source.offset)),
      textArray(records.map(({ source }) => hex(source.key))),
      textArray(records.map(({ source }) => hex(source.value ?? new Uint8Array()))),
      // PostgreSQL's texts cannot hold a NUL, which a parser's message may quote.
      textArray(records.map(({ reason }) => reason.replaceAll('\0', '\\0').slice(0, 1_000))),
      new Date(nowMs),
    ],
  );
}

export type DeadLetter = {
  readonly id: string;
  readonly topic: string;
  readonly partition: number;
  readonly offset: bigint;
  readonly key: Uint8Array | null;
  readonly value: Uint8Array;
  readonly reason: string;
  readonly at: Date;
  readonly replayedAt: Date | null;
};

/** Dead letters, the newest first. `before` is the id of the last one of the page before. */
export async function listDeadLetters(
  pool: Pool,
  page: { limit: number; before?: string; onlyOpen?: boolean },
): Promise<DeadLetter[]> {
  const { rows } = await pool.query<DeadLetterRow>(
    `${selectDeadLetters} where ($2::uuid is null or id < $2) and (not $3 or replayed_at is null)
     order by id desc limit $1`,
    [page.limit, page.before ?? null, page.onlyOpen ?? false],
  );
  return rows.map(fromRow);
}

export async function findDeadLetters(
  pool: Pool | PoolClient,
  ids: readonly string[],
): Promise<DeadLetter[]> {
  const { rows } = await pool.query<DeadLetterRow>(
    `${selectDeadLetters} where id = any($1::uuid[]) order by id`,
    [ids],
  );
  return rows.map(fromRow);
}

const selectDeadLetters = `select id, topic, partition, "offset", key, value, reason, at,
  replayed_at as "replayedAt" from dead_letter`;

type DeadLetterRow = Omit<DeadLetter, 'offset'> & { offset: string };
const fromRow = (row: DeadLetterRow): DeadLetter => ({ ...row, offset: BigInt(row.offset) });
