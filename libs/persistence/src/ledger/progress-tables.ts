import type { Pool, PoolClient } from 'pg';
import { plainArray, textArray } from './array-literal.js';
import { compare } from './rollup-deltas.js';
import {
  advanceWatermark,
  blockOf,
  countMarked,
  emptyBlock,
  mark,
  missingRanges,
  type SequenceRange,
} from './sequence-block.js';

/** One event's place in its shard's numbering, and when its call ended (milliseconds since the Unix epoch). */
export type Arrival = {
  readonly shard: number;
  readonly epoch: string;
  readonly seq: number;
  readonly endedAtMs: number;
};

type Line = {
  readonly shard: number;
  readonly epoch: string;
  readonly arrivals: Arrival[];
};

type LineState = {
  readonly watermark: number;
  readonly highest: number;
  readonly watermarkAtMs: number | null;
  readonly holeSince: Date | null;
};

type Blocks = Map<number, Uint8Array>;

/** Blocks read at once while the watermark moves over full ones. */
const readAheadBlocks = 64;

/**
 * Marks sequence numbers as arrived and moves the watermark of each (shard, epoch). Marking twice changes nothing.
 * The row of (shard, epoch) is locked first, in key order, and guards its blocks.
 */
export async function recordArrivals(
  client: PoolClient,
  arrivals: readonly Arrival[],
  nowMs: number,
): Promise<void> {
  const lines = linesOf(arrivals);
  if (lines.length === 0) return;
  const now = new Date(nowMs);
  const { rows } = await client.query<{
    shard: number;
    epoch: string;
    watermark_seq: string;
    highest_seq: string;
    watermark_at: Date | null;
    hole_since: Date | null;
  }>({
    name: 'weir_lock_progress',
    text: `insert into ledger_progress as p
        (shard, epoch, watermark_seq, highest_seq, first_seen_at, updated_at)
      select shard, epoch, 0, 0, $3, $3 from unnest($1::smallint[], $2::text[]) as u (shard, epoch)
      order by shard, epoch collate "C"
      on conflict (shard, epoch) do update set updated_at = excluded.updated_at
      returning shard, epoch, watermark_seq, highest_seq, watermark_at, hole_since`,
    values: [
      plainArray(lines.map(({ shard }) => shard)),
      textArray(lines.map(({ epoch }) => epoch)),
      now,
    ],
  });
  const states = new Map<string, LineState>();
  for (const row of rows) {
    states.set(`${row.shard}|${row.epoch}`, {
      watermark: Number(row.watermark_seq),
      highest: Number(row.highest_seq),
      watermarkAtMs: row.watermark_at?.getTime() ?? null,
      holeSince: row.hole_since,
    });
  }
  const stateOf = (line: Line): LineState => {
    const state = states.get(`${line.shard}|${line.epoch}`);
    if (state === undefined) throw new Error('a locked progress row was not returned');
    return state;
  };
  const allBlocks = await readTouchedBlocks(client, lines, stateOf);
  const updates: { line: Line; state: LineState }[] = [];
  const writes: { line: Line; block: number; bits: Uint8Array }[] = [];
  for (const [index, line] of lines.entries()) {
    const before = stateOf(line);
    const blocks = allBlocks[index] ?? new Map<number, Uint8Array>();
    const touched = markAll(line, before, blocks);
    const after = await advance(client, line, before, blocks, now);
    updates.push({ line, state: after });
    for (const block of touched) {
      const bits = blocks.get(block);
      // Blocks that lie wholly below the watermark are deleted, not written.
      if (bits !== undefined && block >= blockOf(after.watermark + 1)) {
        writes.push({ line, block, bits });
      }
    }
  }
  await writeProgress(client, updates, writes);
}

function linesOf(arrivals: readonly Arrival[]): Line[] {
  const lines = new Map<string, Line>();
  for (const arrival of arrivals) {
    const key = `${arrival.shard}|${arrival.epoch}`;
    const line = lines.get(key);
    if (line === undefined) {
      lines.set(key, { shard: arrival.shard, epoch: arrival.epoch, arrivals: [arrival] });
    } else line.arrivals.push(arrival);
  }
  return [...lines.values()].sort((a, b) => a.shard - b.shard || compare(a.epoch, b.epoch));
}

/** Per line: the blocks that its arrivals fall into, and the one that the watermark stands in. */
async function readTouchedBlocks(
  client: PoolClient,
  lines: readonly Line[],
  stateOf: (line: Line) => LineState,
): Promise<Blocks[]> {
  const wanted: { index: number; block: number }[] = [];
  for (const [index, line] of lines.entries()) {
    const { watermark } = stateOf(line);
    const blocks = new Set([blockOf(watermark + 1)]);
    for (const { seq } of line.arrivals) if (seq > watermark) blocks.add(blockOf(seq));
    for (const block of blocks) wanted.push({ index, block });
  }
  const { rows } = await client.query<{ line: number; block: string; seen: Buffer }>({
    name: 'weir_read_blocks',
    text: `select u.line, b.block, b.seen
      from unnest($1::int[], $2::smallint[], $3::text[], $4::bigint[]) as u (line, shard, epoch, block)
      join ledger_progress_block b using (shard, epoch, block)`,
    values: [
      plainArray(wanted.map(({ index }) => index)),
      plainArray(wanted.map(({ index }) => lines[index]?.shard ?? 0)),
      textArray(wanted.map(({ index }) => lines[index]?.epoch ?? '')),
      plainArray(wanted.map(({ block }) => block)),
    ],
  });
  const result: Blocks[] = lines.map(() => new Map());
  for (const { line, block, seen } of rows) result[line]?.set(Number(block), new Uint8Array(seen));
  return result;
}

function markAll(line: Line, { watermark }: LineState, blocks: Blocks): ReadonlySet<number> {
  const touched = new Set<number>();
  for (const { seq } of line.arrivals) {
    if (seq <= watermark) continue;
    const index = blockOf(seq);
    let bits = blocks.get(index);
    if (bits === undefined) {
      bits = emptyBlock();
      blocks.set(index, bits);
    }
    if (mark(bits, seq)) touched.add(index);
  }
  return touched;
}

async function advance(
  client: PoolClient,
  line: Line,
  before: LineState,
  blocks: Blocks,
  now: Date,
): Promise<LineState> {
  const highest = line.arrivals.reduce((max, { seq }) => Math.max(max, seq), before.highest);
  let watermark = before.watermark;
  for (;;) {
    watermark = advanceWatermark(watermark, highest, (index) => blocks.get(index));
    const next = blockOf(watermark + 1);
    if (watermark === highest || blocks.has(next)) break;
    // It stands at the end of a full block, and the next ones have not been read.
    const { rows } = await client.query<{ block: string; seen: Buffer }>(
      `select block, seen from ledger_progress_block
       where shard = $1 and epoch = $2 and block >= $3 and block < $4`,
      [line.shard, line.epoch, next, next + readAheadBlocks],
    );
    for (const row of rows) {
      if (!blocks.has(Number(row.block))) blocks.set(Number(row.block), new Uint8Array(row.seen));
    }
    if (!blocks.has(next)) break;
  }
  // Of this slice's calls at or below the watermark the last to end: a lower bound, which is what a promise needs.
  let watermarkAtMs = before.watermarkAtMs;
  for (const { seq, endedAtMs } of line.arrivals) {
    if (seq <= watermark && endedAtMs > (watermarkAtMs ?? 0)) watermarkAtMs = endedAtMs;
  }
  const isSameHole = watermark === before.watermark && before.holeSince !== null;
  return {
    watermark,
    highest,
    watermarkAtMs,
    holeSince: watermark === highest ? null : isSameHole ? before.holeSince : now,
  };
}

async function writeProgress(
  client: PoolClient,
  updates: readonly { line: Line; state: LineState }[],
  writes: readonly { line: Line; block: number; bits: Uint8Array }[],
): Promise<void> {
  const iso = (at: number | Date | null) => (at === null ? null : new Date(at).toISOString());
  await client.query({
    name: 'weir_write_progress',
    text: `with done as (
        update ledger_progress p set watermark_seq = u.watermark, highest_seq = u.highest,
          watermark_at = u.watermark_at, hole_since = u.hole_since
        from unnest($1::smallint[], $2::text[], $3::bigint[], $4::bigint[], $5::timestamptz[], $6::timestamptz[])
          as u (shard, epoch, watermark, highest, watermark_at, hole_since)
        where p.shard = u.shard and p.epoch = u.epoch
        returning p.shard, p.epoch, p.watermark_seq
      )
      delete from ledger_progress_block b using done d
      where b.shard = d.shard and b.epoch = d.epoch and b.block < d.watermark_seq / 1000`,
    values: [
      plainArray(updates.map(({ line }) => line.shard)),
      textArray(updates.map(({ line }) => line.epoch)),
      plainArray(updates.map(({ state }) => state.watermark)),
      plainArray(updates.map(({ state }) => state.highest)),
      plainArray(updates.map(({ state }) => iso(state.watermarkAtMs))),
      plainArray(updates.map(({ state }) => iso(state.holeSince))),
    ],
  });
  if (writes.length === 0) return;
  await client.query({
    name: 'weir_write_blocks',
    text: `insert into ledger_progress_block (shard, epoch, block, count, seen)
      select * from unnest($1::smallint[], $2::text[], $3::bigint[], $4::int[], $5::bytea[])
      on conflict (shard, epoch, block) do update set count = excluded.count, seen = excluded.seen`,
    values: [
      plainArray(writes.map(({ line }) => line.shard)),
      textArray(writes.map(({ line }) => line.epoch)),
      plainArray(writes.map(({ block }) => block)),
      plainArray(writes.map(({ bits }) => countMarked(bits))),
      textArray(writes.map(({ bits }) => `\\x${Buffer.from(bits).toString('hex')}`)),
    ],
  });
}

/** Where the ledger stands in one shard's numbering. */
export type ProgressLine = {
  readonly shard: number;
  readonly epoch: string;
  readonly watermarkSeq: number;
  readonly highestSeq: number;
  readonly watermarkAt: Date | null;
  readonly holeSince: Date | null;
  readonly firstSeenAt: Date;
};

/** All lines, the newest epoch of each shard first: epochs are UUIDv7s. */
export async function readProgress(pool: Pool | PoolClient): Promise<ProgressLine[]> {
  const { rows } = await pool.query<{
    shard: number;
    epoch: string;
    watermark_seq: string;
    highest_seq: string;
    watermark_at: Date | null;
    hole_since: Date | null;
    first_seen_at: Date;
  }>(
    `select shard, epoch, watermark_seq, highest_seq, watermark_at, hole_since, first_seen_at
     from ledger_progress order by shard, epoch collate "C" desc`,
  );
  return rows.map((row) => ({
    shard: row.shard,
    epoch: row.epoch,
    watermarkSeq: Number(row.watermark_seq),
    highestSeq: Number(row.highest_seq),
    watermarkAt: row.watermark_at,
    holeSince: row.hole_since,
    firstSeenAt: row.first_seen_at,
  }));
}

/** Where the ledger stands in a shard's newest epoch, or null when nothing of the shard was ever booked. */
export async function ledgerStateOf(
  pool: Pool,
  shard: number,
): Promise<{ epoch: string; seq: number } | null> {
  const { rows } = await pool.query<{ epoch: string; highest_seq: string }>(
    `select epoch, highest_seq from ledger_progress where shard = $1
     order by epoch collate "C" desc limit 1`,
    [shard],
  );
  const [row] = rows;
  return row === undefined ? null : { epoch: row.epoch, seq: Number(row.highest_seq) };
}

/** The sequence numbers of one line that are missing, at most `limit` ranges. */
export async function findHoles(
  pool: Pool | PoolClient,
  line: Pick<ProgressLine, 'shard' | 'epoch' | 'watermarkSeq' | 'highestSeq'>,
  limit: number,
): Promise<SequenceRange[]> {
  const { rows } = await pool.query<{ block: string; seen: Buffer }>(
    `select block, seen from ledger_progress_block where shard = $1 and epoch = $2
     order by block limit $3`,
    // A range may span a block boundary: with more than `limit` blocks not full, the ranges are cut off anyway.
    [line.shard, line.epoch, Math.max(limit, 1) * 100],
  );
  const blocks = new Map(rows.map(({ block, seen }) => [Number(block), new Uint8Array(seen)]));
  const lastBlock = Math.max(-1, ...blocks.keys());
  const highest = Math.min(line.highestSeq, (lastBlock + 1) * 1_000);
  return missingRanges(line.watermarkSeq, highest, (index) => blocks.get(index), limit);
}
