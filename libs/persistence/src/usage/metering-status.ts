import type { Pool } from 'pg';
import { openAlarms, type OpenAlarm } from '../ledger/alarms.js';
import { findHoles, type ProgressLine, readProgress } from '../ledger/progress-tables.js';

/** What the worker last saw upstream of the ledger. */
export type SourceState = {
  readonly shard: number;
  readonly outboxEntries: bigint;
  readonly brokerLag: bigint;
  readonly oldestEntryAt: Date | null;
  readonly checkedAt: Date;
  readonly drainedAt: Date | null;
};

export type Hole = {
  readonly shard: number;
  readonly epoch: string;
  readonly fromSeq: number;
  readonly toSeq: number;
  /** Since when something behind it waits. */
  readonly since: Date;
};

export type MeteringStatus = {
  /** All calls that had ended by then are in the books; null when that cannot be said of any instant. */
  readonly completeUpTo: Date | null;
  /** Events that were charged and are not booked yet. */
  readonly lagEvents: bigint;
  /** When the worker last looked; null when it never did. */
  readonly checkedAt: Date | null;
  readonly holes: readonly Hole[];
  readonly alarms: readonly OpenAlarm[];
  /** Dead letters that were not booked since. */
  readonly deadLetters: number;
  readonly conflicts: number;
  readonly sources: readonly SourceState[];
};

const holesMax = 100;
const alarmsMax = 100;

/**
 * How far the books are complete.
 *
 * @param shard only this one: what concerns the enterprises on it
 */
export async function meteringStatus(
  pool: Pool,
  options: { shard?: number } = {},
): Promise<MeteringStatus> {
  const ofShard = ({ shard }: { shard: number }) =>
    options.shard === undefined || shard === options.shard;
  const progress = (await readProgress(pool)).filter(ofShard);
  const sources = (await readSources(pool)).filter(ofShard);
  const holes: Hole[] = [];
  for (const line of progress) {
    if (line.holeSince === null || holes.length >= holesMax) continue;
    for (const { from, to } of await findHoles(pool, line, holesMax - holes.length)) {
      const { shard, epoch, holeSince } = line;
      holes.push({ shard, epoch, fromSeq: from, toSeq: to, since: holeSince });
    }
  }
  const counts = await pool.query<{ dead: number; conflicts: number }>(
    `select (select count(*)::int from dead_letter where replayed_at is null) as dead,
       (select count(*)::int from ledger_conflict) as conflicts`,
  );
  return {
    completeUpTo: completeUpTo(progress, sources),
    lagEvents: sources.reduce(
      (sum, { outboxEntries }) => sum + outboxEntries,
      // The broker's partitions do not follow the shards: its lag is the same for all of them.
      sources.reduce((max, { brokerLag }) => (brokerLag > max ? brokerLag : max), 0n),
    ),
    checkedAt: sources.reduce<Date | null>(
      (oldest, { checkedAt }) => (oldest === null || checkedAt < oldest ? checkedAt : oldest),
      null,
    ),
    holes,
    alarms: await openAlarms(pool, alarmsMax),
    deadLetters: counts.rows[0]?.dead ?? 0,
    conflicts: counts.rows[0]?.conflicts ?? 0,
    sources,
  };
}

/** The least of the shards: a sum over all is complete only up to where the last of them is. */
function completeUpTo(
  progress: readonly ProgressLine[],
  sources: readonly SourceState[],
): Date | null {
  const shards = new Set([...progress, ...sources].map(({ shard }) => shard));
  let least: Date | null = null;
  for (const shard of shards) {
    const lines = progress.filter((line) => line.shard === shard);
    const source = sources.find((state) => state.shard === shard);
    const at = completeUpToOf(lines, source);
    if (at === null) return null;
    if (least === null || at < least) least = at;
  }
  return least;
}

function completeUpToOf(
  lines: readonly ProgressLine[],
  source: SourceState | undefined,
): Date | null {
  const withHole = lines.filter(({ holeSince }) => holeSince !== null);
  if (withHole.length > 0) {
    // Up to the last call before the earliest hole.
    return withHole.reduce<Date | null>((least, { watermarkAt }) => {
      const at = watermarkAt ?? new Date(0);
      return least === null || at < least ? at : least;
    }, null);
  }
  const [newest] = lines;
  const known = [newest?.watermarkAt, source?.drainedAt].filter((at) => at instanceof Date);
  if (known.length === 0) return source?.oldestEntryAt ?? null;
  return known.reduce((latest, at) => (at > latest ? at : latest));
}

async function readSources(pool: Pool): Promise<SourceState[]> {
  const { rows } = await pool.query<
    Omit<SourceState, 'outboxEntries' | 'brokerLag'> & { outboxEntries: string; brokerLag: string }
  >(
    `select shard, outbox_entries as "outboxEntries", broker_lag as "brokerLag", oldest_entry_at as "oldestEntryAt",
       checked_at as "checkedAt", drained_at as "drainedAt" from ledger_source order by shard`,
  );
  return rows.map((row) => ({
    ...row,
    outboxEntries: BigInt(row.outboxEntries),
    brokerLag: BigInt(row.brokerLag),
  }));
}

/**
 * Notes what waits upstream of the ledger.
 *
 * @param states the outboxes, seen at `atMs`
 * @param brokerLag records not booked yet, counted after the outboxes were seen
 */
export async function noteSources(
  pool: Pool,
  states: readonly { shard: number; entries: number; oldestAtMs: number | null }[],
  brokerLag: bigint,
  atMs: number,
): Promise<void> {
  for (const { shard, entries, oldestAtMs } of states) {
    // What was settled before has left the outbox, and what has left the outbox is booked.
    const isDrained = entries === 0 && brokerLag === 0n;
    await pool.query(
      `insert into ledger_source as s (shard, outbox_entries, broker_lag, oldest_entry_at, checked_at, drained_at)
       values ($1, $2, $3, $4, $5, $6)
       on conflict (shard) do update set outbox_entries = excluded.outbox_entries, broker_lag = excluded.broker_lag,
         oldest_entry_at = excluded.oldest_entry_at, checked_at = excluded.checked_at,
         drained_at = greatest(s.drained_at, excluded.drained_at)
       where s.checked_at <= excluded.checked_at`,
      [
        shard,
        entries,
        brokerLag.toString(),
        oldestAtMs === null ? null : new Date(oldestAtMs),
        new Date(atMs),
        isDrained ? new Date(atMs) : null,
      ],
    );
  }
}
