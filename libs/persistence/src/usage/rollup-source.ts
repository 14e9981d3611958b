import { DateTime } from 'luxon';
import type { Pool, PoolClient } from 'pg';
import { sumColumns } from '../ledger/rollup-tables.js';

/** An interval of an enterprise's usage. `from` inclusive, `to` exclusive, milliseconds since the Unix epoch; null is unbounded. */
export type UsageRange = {
  readonly enterpriseId: string;
  readonly timeZone: string;
  readonly fromMs: number | null;
  readonly toMs: number | null;
};

/** The shortest period that an answer tells apart. */
export type FinestPeriod = 'hour' | 'day' | 'month';

/** The roll-up that answers for a range with the fewest rows. `$1` is the enterprise, `$2` and `$3` the bounds. */
export type RollupSource = {
  readonly table: 'usage_rollup' | 'usage_rollup_day' | 'usage_rollup_month';
  /** The where clause over the table `r`. */
  readonly where: string;
  readonly values: readonly [string, string | null, string | null];
};

export const rollupSums = sumColumns.map((name) => `sum(r.${name}) as ${name}`).join(', ');

/**
 * Months or days where the range begins and ends with one, in the zone that they are cut in, else quarters. All hold the
 * same figures.
 */
export async function rollupSourceFor(
  pool: Pool | PoolClient,
  range: UsageRange,
  finest: FinestPeriod = 'month',
): Promise<RollupSource> {
  const { rows } = await pool.query<{ zone: string }>(
    'select zone from usage_zone where enterprise_id = $1',
    [range.enterpriseId],
  );
  const isCutInZone = rows[0]?.zone === range.timeZone;
  const beginsAndEndsWith = (unit: 'day' | 'month') =>
    isCutInZone && isStartOf(unit, range.fromMs, range) && isStartOf(unit, range.toMs, range);
  const local = (table: RollupSource['table'], column: string): RollupSource => ({
    table,
    where: `r.enterprise_id = $1 and ($2::date is null or r.${column} >= $2::date) and ($3::date is null or r.${column} < $3::date)`,
    values: [range.enterpriseId, localDay(range.fromMs, range), localDay(range.toMs, range)],
  });
  if (finest === 'month' && beginsAndEndsWith('month')) return local('usage_rollup_month', 'month');
  if (finest !== 'hour' && beginsAndEndsWith('day')) return local('usage_rollup_day', 'day');
  return {
    table: 'usage_rollup',
    where: `r.enterprise_id = $1 and ($2::timestamptz is null or r.quarter >= $2::timestamptz)
      and ($3::timestamptz is null or r.quarter < $3::timestamptz)`,
    values: [range.enterpriseId, iso(range.fromMs), iso(range.toMs)],
  };
}

function isStartOf(unit: 'day' | 'month', atMs: number | null, { timeZone }: UsageRange): boolean {
  if (atMs === null) return true;
  const local = DateTime.fromMillis(atMs, { zone: timeZone });
  // Where the clocks go forward at midnight, a day begins at one o'clock.
  return local.toMillis() === local.startOf(unit).toMillis();
}

function localDay(atMs: number | null, { timeZone }: UsageRange): string | null {
  return atMs === null ? null : DateTime.fromMillis(atMs, { zone: timeZone }).toISODate();
}

const iso = (atMs: number | null): string | null =>
  atMs === null ? null : new Date(atMs).toISOString();
