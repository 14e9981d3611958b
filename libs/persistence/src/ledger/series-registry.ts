import { LRUCache } from 'lru-cache';
import type { Pool } from 'pg';
import { plainArray, textArray } from './array-literal.js';
import { compare } from './rollup-deltas.js';
import type { UsageRecord } from './usage-record.js';

type Path = { readonly enterpriseId: string; readonly departmentIds: string };
type Series = {
  readonly enterpriseId: string;
  readonly pathId: number;
  readonly userId: string;
  readonly keyId: string;
  readonly model: string;
  readonly providerId: string;
  readonly status: string;
};

/**
 * Gives every combination that roll-ups are kept for its number. Numbers are never reused and carry no figures, so
 * they are made outside of the ledger's transaction, and remembered.
 */
export class SeriesRegistry {
  private readonly pathIds: LRUCache<string, number>;
  private readonly seriesIds: LRUCache<string, number>;
  /** By the ids as events spell them. */
  private readonly known: LRUCache<string, number>;

  constructor(
    private readonly pool: Pool,
    cacheMax: number,
  ) {
    this.pathIds = new LRUCache({ max: cacheMax });
    this.seriesIds = new LRUCache({ max: cacheMax });
    this.known = new LRUCache({ max: cacheMax });
  }

  /** The series of each record, in the records' order. */
  async resolve(records: readonly UsageRecord[]): Promise<number[]> {
    const keys = records.map(keyOf);
    const ids = keys.map((key) => this.known.get(key));
    const missing = records.filter((_, index) => ids[index] === undefined);
    const found = missing.length === 0 ? [] : await this.resolveMissing(missing);
    let next = 0;
    return ids.map((id, index) => {
      if (id !== undefined) return id;
      const made = at(found, next);
      next += 1;
      this.known.set(at(keys, index), made);
      return made;
    });
  }

  private async resolveMissing(records: readonly UsageRecord[]): Promise<number[]> {
    const paths = records.map(({ event: { data }, departmentIds }) => ({
      enterpriseId: data.enterprise.id.toLowerCase(),
      departmentIds: `{${departmentIds.join(',').toLowerCase()}}`,
    }));
    const pathIds = await this.resolvePaths(paths);
    const series = records.map(({ event: { data } }, index) => ({
      enterpriseId: data.enterprise.id.toLowerCase(),
      pathId: at(pathIds, index),
      userId: data.user.id.toLowerCase(),
      keyId: data.key.id.toLowerCase(),
      model: data.modelAsked,
      providerId: data.provider.id.toLowerCase(),
      status: data.status,
    }));
    return this.resolveSeries(series);
  }

  private async resolvePaths(paths: readonly Path[]): Promise<number[]> {
    const keyOf = (path: Path) => `${path.enterpriseId}|${path.departmentIds}`;
    return resolveAll(paths, keyOf, this.pathIds, async (missing, insert) => {
      const values = [
        plainArray(missing.map(({ enterpriseId }) => enterpriseId)),
        textArray(missing.map(({ departmentIds }) => departmentIds)),
      ];
      if (insert) {
        await this.pool.query(
          `insert into usage_path (enterprise_id, department_ids)
           select e, d::uuid[] from unnest($1::uuid[], $2::text[]) as u (e, d) order by 1, 2
           on conflict do nothing`,
          values,
        );
      }
      const { rows } = await this.pool.query<{ n: string; id: number }>(
        `select u.n, p.id from unnest($1::uuid[], $2::text[]) with ordinality as u (e, d, n)
         join usage_path p on p.enterprise_id = u.e and p.department_ids = u.d::uuid[]`,
        values,
      );
      return rows;
    });
  }

  private async resolveSeries(series: readonly Series[]): Promise<number[]> {
    const keyOf = (one: Series) =>
      `${one.pathId}|${one.userId}|${one.keyId}|${one.providerId}|${one.status}|${one.model}`;
    return resolveAll(series, keyOf, this.seriesIds, async (missing, insert) => {
      const values = [
        plainArray(missing.map((one) => one.enterpriseId)),
        plainArray(missing.map((one) => one.pathId)),
        plainArray(missing.map((one) => one.userId)),
        plainArray(missing.map((one) => one.keyId)),
        textArray(missing.map((one) => one.model)),
        plainArray(missing.map((one) => one.providerId)),
        textArray(missing.map((one) => one.status)),
      ];
      const columns =
        'unnest($1::uuid[], $2::int[], $3::uuid[], $4::uuid[], $5::text[], $6::uuid[], $7::text[])';
      if (insert) {
        await this.pool.query(
          `insert into usage_series (enterprise_id, path_id, user_id, key_id, model, provider_id, status)
           select * from ${columns} order by 1, 2, 3, 4, 5, 6, 7
           on conflict do nothing`,
          values,
        );
      }
      const { rows } = await this.pool.query<{ n: string; id: number }>(
        `select u.n, s.id from ${columns} with ordinality as u (e, p, us, k, m, pr, st, n)
         join usage_series s on s.enterprise_id = u.e and s.path_id = u.p and s.user_id = u.us
           and s.key_id = u.k and s.model = u.m and s.provider_id = u.pr and s.status = u.st`,
        values,
      );
      return rows;
    });
  }
}

/** All that tells one series from another; the model's name comes last, because it may hold any character. */
function keyOf({ event: { data }, departmentIds }: UsageRecord): string {
  const { enterprise, user, key, provider, status, modelAsked } = data;
  return `${enterprise.id}|${departmentIds.join()}|${user.id}|${key.id}|${provider.id}|${status}|${modelAsked}`;
}

/** Looks up what is known, then what is stored, then stores the rest: each step only for what the last one left. */
async function resolveAll<T>(
  items: readonly T[],
  keyOf: (item: T) => string,
  cache: LRUCache<string, number>,
  find: (missing: readonly T[], insert: boolean) => Promise<{ n: string; id: number }[]>,
): Promise<number[]> {
  const keys = items.map(keyOf);
  const found = new Map<string, number>();
  const missing = new Map<string, T>();
  for (const [index, key] of keys.entries()) {
    if (found.has(key) || missing.has(key)) continue;
    const id = cache.get(key);
    if (id === undefined) missing.set(key, at(items, index));
    else found.set(key, id);
  }
  for (const insert of [false, true]) {
    if (missing.size === 0) break;
    const wanted = [...missing.entries()].sort(([a], [b]) => compare(a, b));
    const rows = await find(
      wanted.map(([, item]) => item),
      insert,
    );
    for (const { n, id } of rows) {
      const [key] = at(wanted, Number(n) - 1);
      found.set(key, id);
      cache.set(key, id);
      missing.delete(key);
    }
  }
  return keys.map((key) => {
    const id = found.get(key);
    if (id === undefined) throw new Error('a series was neither found nor made');
    return id;
  });
}

function at<T>(items: readonly T[], index: number): T {
  const item = items[index];
  if (item === undefined) throw new RangeError(`no element ${index}`);
  return item;
}
