import { LRUCache } from 'lru-cache';
import type { Pool } from 'pg';
import { inTransaction } from '../transaction.js';
import { plainArray } from './array-literal.js';
import { monthOf, sumColumns, zoneLock } from './rollup-tables.js';

/** The zone in which each enterprise's days and months are cut. */
export class UsageZones {
  private readonly known: LRUCache<string, true>;

  constructor(
    private readonly pool: Pool,
    cacheMax: number,
  ) {
    this.known = new LRUCache({ max: cacheMax });
  }

  /** Gives every enterprise that has none yet its zone: that of its settings, or UTC where PostgreSQL knows no such zone. */
  async ensure(enterpriseIds: Iterable<string>): Promise<void> {
    const missing = [...new Set(enterpriseIds)].filter((id) => !this.known.has(id)).sort();
    if (missing.length === 0) return;
    await this.pool.query(
      `insert into usage_zone (enterprise_id, zone)
       select u.id, case when weir_is_time_zone(e.time_zone) then e.time_zone else 'UTC' end
       from unnest($1::uuid[]) as u (id) left join enterprise e on e.id = u.id
       order by 1 on conflict do nothing`,
      [plainArray(missing)],
    );
    for (const id of missing) this.known.set(id, true);
  }
}

/**
 * Cuts an enterprise's days and months anew in another zone, from the roll-ups per quarter. Bookings wait meanwhile.
 * No figure changes: only where days and months begin.
 */
export async function changeUsageZone(
  pool: Pool,
  enterpriseId: string,
  zone: string,
): Promise<void> {
  await inTransaction(pool, async (client) => {
    // Years of a large enterprise take longer than a statement of the API may.
    await client.query('set local statement_timeout = 0');
    await client.query('select pg_advisory_xact_lock($1)', [zoneLock]);
    await client.query(
      `insert into usage_zone (enterprise_id, zone) values ($1, $2)
       on conflict (enterprise_id) do update set zone = excluded.zone`,
      [enterpriseId, zone],
    );
    await client.query('delete from usage_rollup_day where enterprise_id = $1', [enterpriseId]);
    await client.query('delete from usage_rollup_month where enterprise_id = $1', [enterpriseId]);
    await client.query(
      `insert into usage_rollup_day (enterprise_id, day, series_id, ${sumColumns.join(', ')})
       select enterprise_id, (quarter at time zone $2)::date, series_id,
         ${sumColumns.map((name) => `sum(${name})`).join(', ')}
       from usage_rollup where enterprise_id = $1 group by 1, 2, 3`,
      [enterpriseId, zone],
    );
    await client.query(
      `insert into usage_rollup_month (enterprise_id, month, series_id, ${sumColumns.join(', ')})
       select enterprise_id, ${monthOf('day')}, series_id,
         ${sumColumns.map((name) => `sum(${name})`).join(', ')}
       from usage_rollup_day where enterprise_id = $1 group by 1, 2, 3`,
      [enterpriseId],
    );
  });
}

/** Enterprises whose settings name another zone than their days are cut in. */
export async function zonesToChange(pool: Pool): Promise<{ enterpriseId: string; zone: string }[]> {
  const { rows } = await pool.query<{ enterpriseId: string; zone: string }>(
    `select e.id as "enterpriseId", e.time_zone as zone from enterprise e
     join usage_zone z on z.enterprise_id = e.id
     where z.zone <> e.time_zone and weir_is_time_zone(e.time_zone)`,
  );
  return rows;
}
