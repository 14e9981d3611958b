import { keepPreviousData } from '@tanstack/react-query';
import { useMemo } from 'react';
import { api } from '../../api/client.js';
import type { UsageGrouping } from '../../api/types.js';
import { periodsOf, type DateRange } from '../../format/dates.js';
import { departmentSlices } from './department-slices.js';
import { prepareChart } from './prepare-chart.js';
import type { UsageMetric } from './usage-search.js';

/** Booked figures move with the ledger; this often they are read again. */
export const bookedMs = 10_000;

export type UsageFilter = DateRange & {
  departmentId?: string;
  userId?: string;
  keyId?: string;
  model?: string;
};

/** Reads what a chart needs and prepares it; grouped by department also the whole, so that slices add up to it. */
export function useUsageChart({
  filter,
  groupBy,
  granularity,
  metric,
  zone,
}: {
  filter: UsageFilter;
  groupBy: UsageGrouping;
  granularity: 'hour' | 'day' | 'month';
  metric: UsageMetric;
  zone: string;
}) {
  const byDepartment = groupBy === 'department';
  const options = { refetchInterval: bookedMs, placeholderData: keepPreviousData };
  const grouped = api.useQuery(
    'get',
    '/api/v1/usage',
    { params: { query: { ...filter, groupBy, granularity } } },
    options,
  );
  const whole = api.useQuery(
    'get',
    '/api/v1/usage',
    { params: { query: { ...filter, groupBy: 'none' as const, granularity } } },
    { ...options, enabled: byDepartment },
  );
  const organisation = api.useQuery(
    'get',
    '/api/v1/organisation',
    {},
    { enabled: byDepartment, staleTime: 30_000 },
  );
  const { from, to, departmentId } = filter;
  const rows = grouped.data?.rows;
  const totals = whole.data?.rows;
  const nodes = organisation.data?.nodes;
  const chart = useMemo(() => {
    const periods = periodsOf({ from, to }, granularity, zone);
    if (!byDepartment) return rows && prepareChart(rows, metric, granularity, periods);
    if (!rows || !totals || !nodes) return undefined;
    const slices = departmentSlices(rows, totals, nodes, departmentId ?? null);
    return prepareChart(slices, metric, granularity, periods);
  }, [rows, totals, nodes, byDepartment, metric, granularity, from, to, departmentId, zone]);
  const failed = [grouped, ...(byDepartment ? [whole, organisation] : [])].find(
    ({ error, data }) => error && !data,
  );
  return { chart, error: failed?.error ?? null, retry: () => void failed?.refetch() };
}
