import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { type Clock, newId, systemClock } from '@weir/domain';
import type { Pool, PoolClient } from 'pg';
import { inTransaction } from '../transaction.js';
import { type Alarm, raiseAlarms } from './alarms.js';
import { faultText, isDataFault, isMissingPartition } from './database-faults.js';
import { findDeadLetters, storeDeadLetters } from './dead-letters.js';
import { monthStartOf, UsagePartitions } from './partitions.js';
import { type Arrival, recordArrivals } from './progress-tables.js';
import { type BookedRecord, compare, type RollupDelta, rollupDeltas } from './rollup-deltas.js';
import { addToRollups, zoneLock } from './rollup-tables.js';
import { SeriesRegistry } from './series-registry.js';
import { type NameNews, UsageDimensions } from './usage-dimensions.js';
import {
  copyRows,
  encodeRows,
  type EncodedRows,
  findConflicts,
  insertUsageEvents,
  isRepeatedEvent,
} from './usage-event-table.js';
import {
  type AcceptedAge,
  costMismatch,
  type DeadRecord,
  readRecord,
  type SourceRecord,
  type UsageRecord,
} from './usage-record.js';
import { UsageZones } from './usage-zones.js';

/** Records of one partition, in its order. */
export type Slice = {
  readonly topic: string;
  readonly partition: number;
  readonly records: readonly SourceRecord[];
  /**
   * `fenced`: offsets are dense and ascending, and the ledger keeps the next one (Kafka).
   * `unfenced`: they only identify the record (the outbox, a replay); the position is neither checked nor moved.
   */
  readonly order: 'fenced' | 'unfenced';
  /** Book although records before this slice are missing; they are alarmed. Without it the slice is refused. */
  readonly acceptGap?: boolean;
};

export type SliceResult =
  | {
      readonly outcome: 'booked';
      /** New rows. */
      readonly booked: number;
      /** Events that were in the books before. */
      readonly repeated: number;
      readonly conflicts: number;
      readonly deadLetters: number;
    }
  /** The slice begins above the next offset to book: read from `nextOffset` again, or accept the gap. Nothing changed. */
  | { readonly outcome: 'gap'; readonly nextOffset: bigint };

export type LedgerOptions = {
  readonly clock?: Clock;
  /** Age of events that are booked at all. */
  readonly accepted?: AcceptedAge;
  /** Entries of each in-memory cache (series, names). */
  readonly cacheMax?: number;
};

/** What was read of a slice and can be booked, in key order, each key once; `others` holds the later ones of a key. */
type Prepared = {
  readonly firsts: readonly BookedRecord[];
  readonly others: readonly BookedRecord[];
  readonly rest: Rest;
};

/** What is written whether or not an event is new. */
type Rest = { readonly arrivals: readonly Arrival[]; readonly dead: readonly DeadRecord[] };

/** What new rows bring with them. */
type Consequences = {
  readonly lowestOffset: bigint | null;
  readonly deltas: readonly RollupDelta[];
  readonly news: NameNews;
  readonly alarms: readonly Alarm[];
};

/** A slice as it is booked when every event of it is new: worked out ahead of the transaction, and without the events. */
type FreshSlice = {
  readonly rows: EncodedRows;
  readonly consequences: Consequences;
  readonly rest: Rest;
};

/** What a transaction under way has seen of its slice's place. */
type Opened = { readonly fence: bigint | null; readonly alarms: readonly Alarm[] };

type Booked = { readonly result: SliceResult; readonly afterCommit: () => void };

const conflictBytesMax = 64 * 1024;
/** Read in a millisecond or two. */
const recordsPerStep = 128;

/**
 * The books. One transaction per slice does everything or nothing; whatever is delivered again changes nothing.
 *
 * Failure cases: killed before COMMIT, nothing of the slice exists and the offset stands; killed after COMMIT but
 * before the broker learns of it, the slice is delivered again and its rows exist; two workers with the same partition
 * (the broker has given it to another one, and the first has not noticed), the row of the offset serialises them and
 * the key of the event dedupes.
 */
export class UsageLedger {
  private readonly clock: Clock;
  private readonly accepted: AcceptedAge;
  private readonly partitions: UsagePartitions;
  private readonly series: SeriesRegistry;
  private readonly zones: UsageZones;
  private readonly dimensions: UsageDimensions;
  /** Partitions (`topic/partition`) whose last slice brought events that were in the books. */
  private readonly repeating = new Set<string>();
  private workingOut: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly pool: Pool,
    options: LedgerOptions = {},
  ) {
    const cacheMax = options.cacheMax ?? 100_000;
    this.clock = options.clock ?? systemClock;
    this.accepted = options.accepted ?? { pastDays: 1_200, futureDays: 2 };
    this.partitions = new UsagePartitions(pool);
    this.series = new SeriesRegistry(pool, cacheMax);
    this.zones = new UsageZones(pool, cacheMax);
    this.dimensions = new UsageDimensions(cacheMax);
  }

  /**
   * Books a slice. Rejects when the database cannot (see `isTransientFault`): nothing has changed then, and the same
   * slice may be tried again. A record that no database would take is dead-lettered, the rest goes on.
   */
  async bookSlice(slice: Slice): Promise<SliceResult> {
    const nowMs = this.clock.now();
    try {
      return await this.bookAll(slice, nowMs);
    } catch (error) {
      if (!isDataFault(error)) throw error;
      return await this.bookAroundFault(slice, error, nowMs);
    }
  }

  /**
   * Books as if every event were new. Where one is in the books, nothing was done, and the slice is booked row by row; so
   * is the next one of its partition, because what is delivered again comes in many slices.
   */
  private async bookAll(slice: Slice, nowMs: number): Promise<SliceResult> {
    const origin = `${slice.topic}/${slice.partition}`;
    if (!this.repeating.has(origin)) {
      try {
        const result = await this.lookingForPartitions(() => this.bookFresh(slice, nowMs));
        if (result !== null) return result;
      } catch (error) {
        if (!isRepeatedEvent(error)) throw error;
      }
    }
    const result = await this.lookingForPartitions(() => this.bookRowByRow(slice, nowMs));
    if (result.outcome === 'booked') {
      if (result.repeated + result.conflicts > 0) this.repeating.add(origin);
      else this.repeating.delete(origin);
    }
    return result;
  }

  /** Retention may have dropped a partition that we believe in: look again, once. */
  private async lookingForPartitions<T>(attempt: () => Promise<T>): Promise<T> {
    try {
      return await attempt();
    } catch (error) {
      if (!isMissingPartition(error)) throw error;
      this.partitions.forget();
      return attempt();
    }
  }

  /** null: the slice itself holds an event twice. */
  private async bookFresh(slice: Slice, nowMs: number): Promise<SliceResult | null> {
    const fresh = await this.oneByOne(() => this.workOutFresh(slice, nowMs));
    if (fresh === null) return null;
    return this.transact(slice, nowMs, async (client, opened) => {
      await copyRows(client, fresh.rows);
      const afterCommit = await this.finish(client, slice, opened, fresh, nowMs);
      const counts = { booked: fresh.rows.count, repeated: 0, conflicts: 0 };
      const deadLetters = fresh.rest.dead.length;
      return { result: { outcome: 'booked', ...counts, deadLetters }, afterCommit };
    });
  }

  /**
   * All that can be known before the database has answered, so that no lock is held meanwhile. The events end here: a
   * thousand of them kept until the commit is what garbage collection would spend its time on.
   */
  private async workOutFresh(slice: Slice, nowMs: number): Promise<FreshSlice | null> {
    const { firsts, others, rest } = await this.prepare(slice.records, nowMs);
    if (others.length > 0) return null;
    return { rows: encodeRows(firsts), consequences: this.consequencesOf(firsts), rest };
  }

  /** One slice after the other: several at once would be done no sooner, and all their events live longer. */
  private oneByOne<T>(work: () => Promise<T>): Promise<T> {
    const done = this.workingOut.then(work);
    this.workingOut = done.catch(() => undefined);
    return done;
  }

  /** Only what is new counts: what the database returns as inserted. */
  private async bookRowByRow(slice: Slice, nowMs: number): Promise<SliceResult> {
    const { firsts, others, rest } = await this.prepare(slice.records, nowMs);
    return this.transact(slice, nowMs, async (client, opened) => {
      const inserted = await insertUsageEvents(client, firsts);
      const isNew = ({ record }: BookedRecord) => inserted.has(record.key);
      const booked = firsts.filter(isNew);
      const repeated = [...firsts.filter((one) => !isNew(one)), ...others];
      const conflicts = await this.storeConflicts(client, repeated, nowMs);
      const consequences = this.consequencesOf(booked);
      const alarms = [...opened.alarms, ...conflicts];
      const afterCommit = await this.finish(
        client,
        slice,
        { ...opened, alarms },
        { consequences, rest },
        nowMs,
      );
      const result: SliceResult = {
        outcome: 'booked',
        booked: booked.length,
        repeated: repeated.length - conflicts.length,
        conflicts: conflicts.length,
        deadLetters: rest.dead.length,
      };
      return { result, afterCommit };
    });
  }

  /** One transaction: the place of the slice first, locked and compared, then the work. */
  private async transact(
    slice: Slice,
    nowMs: number,
    work: (client: PoolClient, opened: Opened) => Promise<Booked>,
  ): Promise<SliceResult> {
    const { result, afterCommit } = await inTransaction<Booked>(
      this.pool,
      async (client) => {
        const fence = slice.order === 'fenced' ? await this.lockOffset(client, slice, nowMs) : null;
        const firstOffset = slice.records[0]?.offset;
        if (fence === null || firstOffset === undefined || firstOffset <= fence) {
          return work(client, { fence, alarms: [] });
        }
        if (slice.acceptGap !== true) {
          return { result: { outcome: 'gap', nextOffset: fence }, afterCommit: () => undefined };
        }
        const gap: Alarm = {
          kind: 'offset-gap',
          subject: `${slice.topic}/${slice.partition}/${fence}`,
          details: { from: fence.toString(), to: (firstOffset - 1n).toString() },
        };
        return work(client, { fence, alarms: [gap] });
      },
      `begin; select pg_advisory_xact_lock_shared(${zoneLock})`,
    );
    afterCommit();
    return result;
  }

  /** All that follows from the rows. Whoever books an enterprise's usage meets others here: the locks end at the commit. */
  private async finish(
    client: PoolClient,
    slice: Slice,
    { fence, alarms }: Opened,
    { consequences, rest }: { consequences: Consequences; rest: Rest },
    nowMs: number,
  ): Promise<() => void> {
    const afterCommit = await this.dimensions.write(client, consequences.news);
    await addToRollups(client, consequences.deltas);
    await recordArrivals(client, rest.arrivals, nowMs);
    await storeDeadLetters(client, slice, rest.dead, nowMs);
    const rewind =
      fence === null
        ? null
        : await this.moveOffset(client, slice, fence, consequences.lowestOffset);
    await raiseAlarms(
      client,
      [...alarms, ...consequences.alarms, ...(rewind === null ? [] : [rewind])],
      nowMs,
    );
    return afterCommit;
  }

  private consequencesOf(booked: readonly BookedRecord[]): Consequences {
    let lowestOffset: bigint | null = null;
    for (const { record } of booked) {
      const { offset } = record.source;
      if (lowestOffset === null || offset < lowestOffset) lowestOffset = offset;
    }
    return {
      lowestOffset,
      deltas: rollupDeltas(booked),
      news: this.dimensions.newsOf(booked),
      alarms: costAlarms(booked),
    };
  }

  /** Halves the slice until the record at fault stands alone, and dead-letters that one. */
  private async bookAroundFault(slice: Slice, fault: unknown, nowMs: number): Promise<SliceResult> {
    if (slice.records.length === 1) {
      const [source] = slice.records;
      if (source === undefined) throw fault;
      const dead = [{ source, reason: `the database refuses it: ${faultText(fault)}` }];
      return this.transact(slice, nowMs, async (client, opened) => {
        const rest = { arrivals: [], dead };
        const consequences = this.consequencesOf([]);
        const afterCommit = await this.finish(client, slice, opened, { consequences, rest }, nowMs);
        const counts = { booked: 0, repeated: 0, conflicts: 0, deadLetters: 1 };
        return { result: { outcome: 'booked', ...counts }, afterCommit };
      });
    }
    const middle = slice.records.length >> 1;
    const first = await this.bookSlice({ ...slice, records: slice.records.slice(0, middle) });
    if (first.outcome === 'gap') return first;
    const second = await this.bookSlice({ ...slice, records: slice.records.slice(middle) });
    if (second.outcome === 'gap') throw new Error('a gap within a slice');
    return {
      outcome: 'booked',
      booked: first.booked + second.booked,
      repeated: first.repeated + second.repeated,
      conflicts: first.conflicts + second.conflicts,
      deadLetters: first.deadLetters + second.deadLetters,
    };
  }

  /** Reads the records and makes what a booking needs and carries no figures: partitions, numbers of series, zones. */
  private async prepare(sources: readonly SourceRecord[], nowMs: number): Promise<Prepared> {
    const { valid, dead } = await this.read(sources, nowMs);
    const refused = await this.partitions.ensure(valid.map(({ mintedAtMs }) => mintedAtMs));
    const isDropped = ({ mintedAtMs }: UsageRecord) => refused.has(monthStartOf(mintedAtMs));
    const kept = refused.size === 0 ? valid : valid.filter((record) => !isDropped(record));
    const tooOld = valid.filter(isDropped).map(({ source }) => ({
      source,
      reason: 'the month of the event has been dropped by retention',
    }));
    await this.zones.ensure(kept.map(({ event }) => event.data.enterprise.id.toLowerCase()));
    const seriesIds = await this.series.resolve(kept);
    const records = kept.map((record, index) => ({ record, seriesId: seriesIds[index] ?? 0 }));
    const rest = { arrivals: records.map(arrivalOf), dead: [...dead, ...tooOld] };
    return { ...firstOfEachKey(records), rest };
  }

  /** In steps: other slices hold locks meanwhile, and their next statement must not wait for a thousand events. */
  private async read(
    sources: readonly SourceRecord[],
    nowMs: number,
  ): Promise<{ valid: UsageRecord[]; dead: DeadRecord[] }> {
    const valid: UsageRecord[] = [];
    const dead: DeadRecord[] = [];
    for (const [index, source] of sources.entries()) {
      if (index > 0 && index % recordsPerStep === 0) await setImmediate();
      const result = readRecord(source, nowMs, this.accepted);
      if (result.ok) valid.push(result.record);
      else dead.push(result.dead);
    }
    return { valid, dead };
  }

  /** Serialises all who book this partition. Returns the next offset to book. */
  private async lockOffset(client: PoolClient, slice: Slice, nowMs: number): Promise<bigint> {
    const { rows } = await client.query<{ next_offset: string }>({
      name: 'weir_lock_offset',
      text: `insert into ledger_offset (topic, partition, next_offset, updated_at) values ($1, $2, 0, $3)
        on conflict (topic, partition) do update set updated_at = excluded.updated_at
        returning next_offset`,
      values: [slice.topic, slice.partition, new Date(nowMs)],
    });
    return BigInt(rows[0]?.next_offset ?? 0);
  }

  /**
   * Offsets below the fence have been booked: their events dedupe. Should one of them be new all the same, then this
   * is not the topic that the fence was made for (it was deleted and made again): follow it, and say so.
   */
  private async moveOffset(
    client: PoolClient,
    slice: Slice,
    fence: bigint,
    lowestOffset: bigint | null,
  ): Promise<Alarm | null> {
    const last = slice.records.at(-1)?.offset;
    if (last === undefined) return null;
    const isRewound = lowestOffset !== null && lowestOffset < fence;
    if (last < fence && !isRewound) return null;
    await client.query({
      name: 'weir_move_offset',
      text: 'update ledger_offset set next_offset = $3 where topic = $1 and partition = $2',
      values: [slice.topic, slice.partition, (last + 1n).toString()],
    });
    if (!isRewound) return null;
    return {
      kind: 'offset-rewind',
      subject: `${slice.topic}/${slice.partition}`,
      details: { expected: fence.toString(), found: slice.records[0]?.offset.toString() },
    };
  }

  private async storeConflicts(
    client: PoolClient,
    repeated: readonly BookedRecord[],
    nowMs: number,
  ): Promise<Alarm[]> {
    const conflicts = await findConflicts(client, repeated);
    if (conflicts.size === 0) return [];
    const alarms: Alarm[] = [];
    for (const one of repeated) {
      const { event, source } = one.record;
      const differing = await this.conflictOf(client, one, conflicts);
      if (differing === null) continue;
      const reason = `differs in ${differing.join(', ')}`;
      const text = Buffer.from(source.value ?? []).toString('utf8');
      await client.query(
        `insert into ledger_conflict (id, enterprise_id, event_id, content_hash, second, reason, at)
         values ($1, $2, $3, $4, $5, $6, $7) on conflict (enterprise_id, event_id, content_hash) do nothing`,
        [
          newId(nowMs),
          event.data.enterprise.id,
          event.id,
          createHash('sha256').update(text).digest('hex'),
          text.length <= conflictBytesMax
            ? text
            : JSON.stringify({ truncated: text.slice(0, 1_000) }),
          reason,
          new Date(nowMs),
        ],
      );
      alarms.push({
        kind: 'conflict',
        subject: event.data.enterprise.id,
        details: { eventId: event.id, reason },
      });
    }
    return alarms;
  }

  /**
   * `findConflicts` answers per key; where one slice brings a key several times, each is compared by itself.
   */
  private async conflictOf(
    client: PoolClient,
    one: BookedRecord,
    conflicts: ReadonlyMap<string, readonly string[]>,
  ): Promise<readonly string[] | null> {
    const { key } = one.record;
    if (!conflicts.has(key)) return null;
    const alone = await findConflicts(client, [one]);
    return alone.get(key) ?? null;
  }

  /**
   * Books dead letters again, as after a fault in our reading of them was mended. Those that succeed are marked.
   *
   * @returns how many are in the books now
   */
  async replayDeadLetters(
    ids: readonly string[],
  ): Promise<{ replayed: number; stillDead: number }> {
    let replayed = 0;
    let stillDead = 0;
    for (const letter of await findDeadLetters(this.pool, ids)) {
      const source = { offset: letter.offset, key: letter.key, value: letter.value };
      const { topic, partition } = letter;
      const result = await this.bookSlice({
        topic,
        partition,
        records: [source],
        order: 'unfenced',
      });
      if (result.outcome === 'booked' && result.deadLetters === 0) {
        await this.pool.query('update dead_letter set replayed_at = $2 where id = $1', [
          letter.id,
          new Date(this.clock.now()),
        ]);
        replayed += 1;
      } else stillDead += 1;
    }
    return { replayed, stillDead };
  }
}

/** In key order, each key once; `others` holds the later ones of the same key. */
function firstOfEachKey(records: readonly BookedRecord[]): {
  firsts: BookedRecord[];
  others: BookedRecord[];
} {
  // Sorting keeps the order of equals.
  const sorted = [...records].sort((a, b) => compare(a.record.key, b.record.key));
  const firsts: BookedRecord[] = [];
  const others: BookedRecord[] = [];
  for (const one of sorted) {
    (firsts.at(-1)?.record.key === one.record.key ? others : firsts).push(one);
  }
  return { firsts, others };
}

function arrivalOf({ record }: BookedRecord): Arrival {
  const { shard, epoch, seq } = record.event.data.position;
  return { shard, epoch, seq, endedAtMs: record.endedAtMs };
}

/** One alarm per price version: a wrong price makes every call of its model differ. */
function costAlarms(booked: readonly BookedRecord[]): Alarm[] {
  return booked.flatMap(({ record: { event } }) => {
    const reason = costMismatch(event);
    if (reason === null) return [];
    return [
      {
        kind: 'cost-mismatch' as const,
        subject: `${event.data.enterprise.id}/${event.data.price.id}`,
        details: { eventId: event.id, model: event.data.modelAsked, reason },
      },
    ];
  });
}
