import type { UsageReport, UsageRow } from '../../api/types.js';
import { scaled, unscaled } from '../../format/decimal.js';
import type { UsageMetric } from './usage-search.js';

/** One colour each is told apart at a glance; what is beyond goes into "Other". */
export const seriesMax = 7;

export type ChartSeries = {
  /** `s0` … or `other`: a key in {@link ChartPoint.values}. */
  readonly key: string;
  readonly groupId: string | null;
  /** null: no grouping, or the rest of the groups. */
  readonly name: string | null;
  readonly deleted: boolean;
  readonly isOther: boolean;
  /** Exact Σ over the range. */
  readonly total: string;
  /** How many groups it stands for. */
  readonly groups: number;
};

export type ChartPoint = {
  readonly period: string;
  /** By series key, for drawing only: doubles, as pixels are. */
  readonly values: Readonly<Record<string, number>>;
  /** The same, exact. */
  readonly exact: Readonly<Record<string, string>>;
  readonly total: string;
};

export type PreparedChart = {
  readonly series: readonly ChartSeries[];
  readonly points: readonly ChartPoint[];
  /** No figure above zero. */
  readonly empty: boolean;
};

const periodLength = { hour: 16, day: 10, month: 7 } as const;

/**
 * Decides all that a stacked chart of usage shows: the largest groups by their sum over the range, the rest as one,
 * and every period of the range whether or not something was used in it. Sums are exact.
 *
 * @param periods all periods of the range, in order
 */
export function prepareChart(
  rows: readonly UsageRow[],
  metric: UsageMetric,
  granularity: 'hour' | 'day' | 'month',
  periods: readonly string[],
  top: number = seriesMax,
): PreparedChart {
  const groups = new Map<string, { row: UsageRow; total: bigint }>();
  for (const row of rows) {
    const id = row.groupId ?? '';
    const group = groups.get(id) ?? { row, total: 0n };
    group.total += scaled(row[metric]);
    groups.set(id, group);
  }
  // Equal sums are ordered by name, so that colours do not jump between two reads.
  const ranked = [...groups.entries()].sort(
    ([, a], [, b]) =>
      (a.total === b.total ? 0 : a.total < b.total ? 1 : -1) ||
      (a.row.groupName ?? '').localeCompare(b.row.groupName ?? ''),
  );
  // One group alone is not hidden behind "Other".
  const shown = ranked.length <= top + 1 ? ranked.length : top;
  const keyOf = new Map(
    ranked.map(([id], index) => [id, index < shown ? `s${index}` : 'other'] as const),
  );
  const rest = ranked.slice(shown);
  const series: ChartSeries[] = ranked.slice(0, shown).map(([, { row, total }], index) => ({
    key: `s${index}`,
    groupId: row.groupId,
    name: row.groupName,
    deleted: row.deleted,
    isOther: false,
    total: unscaled(total),
    groups: 1,
  }));
  if (rest.length > 0) {
    series.push({
      key: 'other',
      groupId: null,
      name: null,
      deleted: false,
      isOther: true,
      total: unscaled(rest.reduce((sum, [, { total }]) => sum + total, 0n)),
      groups: rest.length,
    });
  }

  const cells = new Map<string, Map<string, bigint>>();
  for (const row of rows) {
    const period = (row.period ?? '').slice(0, periodLength[granularity]);
    const key = keyOf.get(row.groupId ?? '') ?? 'other';
    const cell = cells.get(period) ?? new Map<string, bigint>();
    cell.set(key, (cell.get(key) ?? 0n) + scaled(row[metric]));
    cells.set(period, cell);
  }
  const points = periods.map((period) => {
    const cell = cells.get(period) ?? new Map<string, bigint>();
    const exact: Record<string, string> = {};
    const values: Record<string, number> = {};
    let total = 0n;
    for (const { key } of series) {
      const value = cell.get(key) ?? 0n;
      total += value;
      exact[key] = unscaled(value);
      values[key] = Number(exact[key]);
    }
    return { period, values, exact, total: unscaled(total) };
  });
  return { series, points, empty: points.every(({ total }) => total === '0') };
}

/** Each group's share of the server's total in basis points, for the table's bars; 0 where there is no total. */
export function shareOf(row: UsageRow, totals: UsageReport['totals'], metric: UsageMetric): number {
  const whole = scaled(totals[metric]);
  return whole <= 0n ? 0 : Number((scaled(row[metric]) * 10_000n) / whole);
}

/** The granularity that suits a range when none is chosen: hours for up to two days, months beyond four. */
export function fittingGranularity(days: number): 'hour' | 'day' | 'month' {
  if (days <= 2) return 'hour';
  return days <= 124 ? 'day' : 'month';
}

/** A tick of an axis in three digits: `1.95k`, `0.025`. Ticks are round numbers chosen for drawing, not figures. */
export function axisText(value: number): string {
  for (const [unit, size] of [
    ['T', 1e12],
    ['B', 1e9],
    ['M', 1e6],
    ['k', 1e3],
  ] as const) {
    if (value >= size) return `${Number((value / size).toPrecision(3))}${unit}`;
  }
  return String(Number(value.toPrecision(3)));
}
