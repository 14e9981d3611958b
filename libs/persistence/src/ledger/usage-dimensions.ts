import type { UsageEventData } from '@weir/domain';
import { LRUCache } from 'lru-cache';
import type { PoolClient } from 'pg';
import { plainArray, textArray } from './array-literal.js';
import { compare, type BookedRecord } from './rollup-deltas.js';

type Dimension = {
  readonly enterpriseId: string;
  readonly kind: 'department' | 'user' | 'key' | 'provider';
  readonly id: string;
  readonly name: string;
  /** A literal of the department ids, outermost first. */
  readonly path: string;
  readonly seenAtMs: number;
};

/** A name that has not changed is written again only this long after the last time. */
const refreshMs = 3_600_000;

const upsert = {
  name: 'weir_upsert_dimensions',
  text: `insert into usage_dimension as d (enterprise_id, kind, id, name, path, last_seen_at)
    select enterprise_id, kind, id, name, path::uuid[], last_seen_at
    from unnest($1::uuid[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::timestamptz[])
      as u (enterprise_id, kind, id, name, path, last_seen_at)
    on conflict (enterprise_id, kind, id) do update
      set name = excluded.name, path = excluded.path, last_seen_at = excluded.last_seen_at
      where d.last_seen_at < excluded.last_seen_at`,
};

type Seen = { readonly names: readonly string[]; readonly atMs: number };
/** By series. */
export type NameNews = ReadonlyMap<
  number,
  { readonly data: UsageEventData; readonly atMs: number }
>;

/** Keeps the names that events carry, so that reports can name what was renamed or deleted since. */
export class UsageDimensions {
  /** Per series, the newest event whose names are stored. */
  private readonly stored: LRUCache<number, Seen>;
  /** Per dimension, what is stored. A new series of known names must not write its departments and provider again:
   * those rows are everyone's, and who writes them keeps all others waiting until its commit. */
  private readonly written: LRUCache<string, Dimension>;

  constructor(cacheMax: number) {
    this.stored = new LRUCache({ max: cacheMax });
    this.written = new LRUCache({ max: cacheMax });
  }

  /** The newest event of each series that may say something new. */
  newsOf(booked: readonly BookedRecord[]): NameNews {
    const newest = new Map<number, { data: UsageEventData; atMs: number }>();
    for (const { record, seriesId } of booked) {
      const { data } = record.event;
      const atMs = record.reservedAtMs;
      const known = this.stored.get(seriesId);
      // An older event than the last one stored says nothing new.
      if (known !== undefined && atMs <= known.atMs) continue;
      if (known !== undefined && atMs - known.atMs < refreshMs && hasNames(data, known)) continue;
      const other = newest.get(seriesId);
      if (other === undefined || other.atMs < atMs) newest.set(seriesId, { data, atMs });
    }
    return newest;
  }

  /**
   * Writes the names that are not known to be stored, in key order.
   *
   * @param news of newly booked events
   * @returns what to call once the transaction is committed
   */
  async write(client: PoolClient, news: NameNews): Promise<() => void> {
    const wanted = new Map<string, Dimension>();
    for (const { data, atMs } of news.values()) {
      for (const dimension of dimensionsOf(data, atMs)) {
        const key = `${dimension.enterpriseId}|${dimension.kind}|${dimension.id}`;
        if (this.isWritten(key, dimension)) continue;
        const known = wanted.get(key);
        if (known === undefined || known.seenAtMs < dimension.seenAtMs) wanted.set(key, dimension);
      }
    }
    const sorted = [...wanted.entries()].sort(([a], [b]) => compare(a, b));
    if (sorted.length > 0) {
      const rows = sorted.map(([, dimension]) => dimension);
      await client.query({
        ...upsert,
        values: [
          plainArray(rows.map(({ enterpriseId }) => enterpriseId)),
          textArray(rows.map(({ kind }) => kind)),
          plainArray(rows.map(({ id }) => id)),
          textArray(rows.map(({ name }) => name)),
          textArray(rows.map(({ path }) => path)),
          plainArray(rows.map(({ seenAtMs }) => new Date(seenAtMs).toISOString())),
        ],
      });
    }
    return () => {
      for (const [key, dimension] of sorted) this.written.set(key, dimension);
      for (const [seriesId, { data, atMs }] of news) {
        const known = this.stored.get(seriesId);
        if (known !== undefined && known.atMs >= atMs) continue;
        // Without the event: it would be kept for as long as its series is.
        this.stored.set(seriesId, { names: namesOf(data), atMs });
      }
    };
  }

  private isWritten(key: string, { name, path, seenAtMs }: Dimension): boolean {
    const known = this.written.get(key);
    if (known === undefined) return false;
    if (seenAtMs <= known.seenAtMs) return true;
    return known.name === name && known.path === path && seenAtMs - known.seenAtMs < refreshMs;
  }
}

function namesOf({ departments, user, key, provider }: UsageEventData): string[] {
  return [user.name, key.name, provider.name, ...departments.map(({ name }) => name)];
}

/** Whether an event has the names that another of its series had, whose ids are the same. */
function hasNames({ departments, user, key, provider }: UsageEventData, { names }: Seen): boolean {
  if (names[0] !== user.name || names[1] !== key.name || names[2] !== provider.name) return false;
  return departments.every(({ name }, index) => names[index + 3] === name);
}

function dimensionsOf(data: UsageEventData, seenAtMs: number): Dimension[] {
  const enterpriseId = data.enterprise.id.toLowerCase();
  const ids = data.departments.map(({ id }) => id.toLowerCase());
  const path = `{${ids.join(',')}}`;
  const base = { enterpriseId, seenAtMs };
  return [
    ...data.departments.map(({ name }, index) => ({
      ...base,
      kind: 'department' as const,
      id: ids[index] ?? '',
      name,
      path: `{${ids.slice(0, index + 1).join(',')}}`,
    })),
    { ...base, kind: 'user', id: data.user.id.toLowerCase(), name: data.user.name, path },
    { ...base, kind: 'key', id: data.key.id.toLowerCase(), name: data.key.name, path: '{}' },
    {
      ...base,
      kind: 'provider',
      id: data.provider.id.toLowerCase(),
      name: data.provider.name,
      path: '{}',
    },
  ];
}
