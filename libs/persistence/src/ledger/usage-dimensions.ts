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

/** Keeps the names that events carry, so that reports can name what was renamed or deleted since. */
export class UsageDimensions {
  private readonly written: LRUCache<string, Dimension>;

  constructor(cacheMax: number) {
    this.written = new LRUCache({ max: cacheMax });
  }

  /**
   * Writes the names of newly booked events that are not known to be stored. In key order.
   *
   * @returns what to call once the transaction is committed
   */
  async write(client: PoolClient, booked: readonly BookedRecord[]): Promise<() => void> {
    const wanted = new Map<string, Dimension>();
    for (const { record } of booked) {
      for (const dimension of dimensionsOf(record)) {
        const key = `${dimension.enterpriseId}|${dimension.kind}|${dimension.id}`;
        const known = wanted.get(key);
        if (known !== undefined && known.seenAtMs >= dimension.seenAtMs) continue;
        if (this.isStored(key, dimension)) continue;
        wanted.set(key, dimension);
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
      for (const [key, dimension] of sorted) {
        const known = this.written.get(key);
        if (known === undefined || known.seenAtMs < dimension.seenAtMs)
          this.written.set(key, dimension);
      }
    };
  }

  /** An older event than the last one written says nothing new; a newer one does when it names it differently. */
  private isStored(key: string, dimension: Dimension): boolean {
    const known = this.written.get(key);
    if (known === undefined) return false;
    if (dimension.seenAtMs <= known.seenAtMs) return true;
    const isSame = known.name === dimension.name && known.path === dimension.path;
    return isSame && dimension.seenAtMs - known.seenAtMs < refreshMs;
  }
}

function dimensionsOf({ event: { data }, reservedAtMs }: BookedRecord['record']): Dimension[] {
  const enterpriseId = data.enterprise.id.toLowerCase();
  const ids = data.departments.map(({ id }) => id.toLowerCase());
  const path = `{${ids.join(',')}}`;
  const base = { enterpriseId, seenAtMs: reservedAtMs };
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
