import { lazy, Suspense } from 'react';
import { Loading } from '../../ui/states.js';
import type { PreparedChart } from './prepare-chart.js';
import type { UsageMetric } from './usage-search.js';

const Chart = lazy(async () => ({ default: (await import('./usage-chart.js')).UsageChart }));

/** The chart, whose drawing library is loaded only where one is shown. */
export function LazyUsageChart(props: {
  chart: PreparedChart;
  metric: UsageMetric;
  height?: number;
}) {
  return (
    <Suspense fallback={<Loading rows={6} />}>
      <Chart {...props} />
    </Suspense>
  );
}
