import { useTranslation } from 'react-i18next';
import {
  Bar,
  BarChart,
  CartesianGrid,
  ResponsiveContainer,
  Tooltip,
  XAxis,
  YAxis,
  type TooltipContentProps,
} from 'recharts';
import { useFormat } from '../../format/use-format.js';
import { restGroup } from './department-slices.js';
import {
  axisText,
  type ChartPoint,
  type ChartSeries,
  type PreparedChart,
} from './prepare-chart.js';
import type { UsageMetric } from './usage-search.js';

/** Rows of the tooltip; what is less is summed up in its total. */
const tooltipRowsMax = 9;

export function seriesColour(series: ChartSeries, index: number): string {
  return series.isOther || series.groupId === restGroup
    ? 'var(--chart-other)'
    : `var(--chart-${(index % 8) + 1})`;
}

export function useSeriesName(): (series: ChartSeries) => string {
  const { t } = useTranslation();
  return (series) =>
    series.groupId === restGroup
      ? t('usage.rest')
      : series.isOther
        ? t('usage.other', { groups: series.groups })
        : (series.name ?? t('usage.allUsage')) +
          (series.deleted ? ` ${t('usage.deletedMark')}` : '');
}

/** Draws what {@link PreparedChart} says; it decides nothing. The table beneath has the same figures as text. */
export function UsageChart({
  chart,
  metric,
  height = 260,
}: {
  chart: PreparedChart;
  metric: UsageMetric;
  height?: number;
}) {
  const format = useFormat();
  const seriesName = useSeriesName();
  const data = chart.points.map(({ period, values }) => ({ period, ...values }));
  const points = new Map(chart.points.map((point) => [point.period, point]));
  const axis = (value: number) => (metric === 'cost' ? format.sign : '') + axisText(value);
  return (
    <div data-testid="usage-chart">
      <ResponsiveContainer width="100%" height={height} initialDimension={{ width: 640, height }}>
        <BarChart
          data={data}
          margin={{ top: 8, right: 8, bottom: 0, left: 0 }}
          barCategoryGap="18%"
        >
          <CartesianGrid vertical={false} stroke="var(--line)" />
          <XAxis
            dataKey="period"
            tickFormatter={periodLabel}
            tick={{ fill: 'var(--ink-3)', fontSize: 11 }}
            tickLine={false}
            axisLine={{ stroke: 'var(--line-strong)' }}
            minTickGap={24}
          />
          <YAxis
            width={52}
            tickFormatter={axis}
            tick={{ fill: 'var(--ink-3)', fontSize: 11 }}
            tickLine={false}
            axisLine={false}
            tickCount={5}
          />
          <Tooltip
            cursor={{ fill: 'var(--sunken)', opacity: 0.7 }}
            isAnimationActive={false}
            wrapperStyle={{ zIndex: 20, outline: 'none' }}
            content={(props) => (
              <ChartTooltip {...props} chart={chart} metric={metric} points={points} />
            )}
          />
          {chart.series.map((series, index) => (
            <Bar
              key={series.key}
              dataKey={series.key}
              name={seriesName(series)}
              stackId="usage"
              fill={seriesColour(series, index)}
              maxBarSize={44}
              isAnimationActive={false}
            />
          ))}
        </BarChart>
      </ResponsiveContainer>
      <ul className="mt-2 flex flex-wrap gap-x-4 gap-y-1 px-2 text-xs text-ink-2">
        {chart.series.map((series, index) => (
          <li key={series.key} className="flex min-w-0 items-center gap-1.5">
            <span
              aria-hidden
              className="size-2.5 shrink-0 rounded-[3px]"
              style={{ backgroundColor: seriesColour(series, index) }}
            />
            <span className="max-w-48 truncate">{seriesName(series)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** `11-29`, `13:00`, `2026-11`: what differs from tick to tick. */
function periodLabel(period: string): string {
  if (period.length > 10) return period.slice(11);
  return period.length > 7 ? period.slice(5) : period;
}

function ChartTooltip({
  active,
  label,
  chart,
  metric,
  points,
}: Pick<TooltipContentProps, 'active' | 'label'> & {
  chart: PreparedChart;
  metric: UsageMetric;
  points: ReadonlyMap<string, ChartPoint>;
}) {
  const { t } = useTranslation();
  const format = useFormat();
  const seriesName = useSeriesName();
  const point = points.get(String(label));
  if (!active || !point) return null;
  const figure = (text: string) => (metric === 'cost' ? format.money(text) : format.count(text));
  const used = chart.series
    .map((series, index) => ({ series, index, text: point.exact[series.key] ?? '0' }))
    .filter(({ text }) => text !== '0')
    .slice(0, tooltipRowsMax);
  return (
    <div className="min-w-44 rounded-lg border border-line bg-surface px-3 py-2 text-xs shadow-float">
      <p className="tabular mb-1 font-medium">{point.period.replace('T', ' ')}</p>
      {used.map(({ series, index, text }) => (
        <p key={series.key} className="flex items-center gap-1.5">
          <span
            className="size-2 rounded-[2px]"
            style={{ backgroundColor: seriesColour(series, index) }}
          />
          <span className="max-w-40 truncate text-ink-2">{seriesName(series)}</span>
          <span className="tabular ml-auto pl-4">{figure(text)}</span>
        </p>
      ))}
      <p className="mt-1 flex justify-between border-t border-line pt-1 font-medium">
        <span>{t('usage.total')}</span>
        <span className="tabular">{figure(point.total)}</span>
      </p>
    </div>
  );
}
