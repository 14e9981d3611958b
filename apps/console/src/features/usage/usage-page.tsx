import { keepPreviousData } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import type { ColumnDef } from '@tanstack/react-table';
import { FileDown, X } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { toast } from 'sonner';
import { asApiError } from '../../api/api-error.js';
import { api } from '../../api/client.js';
import type { UsageGrouping, UsageReport, UsageRow } from '../../api/types.js';
import { useDenied } from '../../app/me.js';
import { presetRange, rangePresets, shiftDays, type DateRange } from '../../format/dates.js';
import { compareText, percentText } from '../../format/decimal.js';
import { useFormat } from '../../format/use-format.js';
import { Badge } from '../../ui/badge.js';
import { Button, IconButton } from '../../ui/button.js';
import { DataTable } from '../../ui/data-table.js';
import { Field, Input, Select } from '../../ui/field.js';
import { Count, Figure, Money } from '../../ui/figures.js';
import { PageHeader, Panel } from '../../ui/panel.js';
import { Segmented } from '../../ui/segmented.js';
import { ErrorState, Loading, State } from '../../ui/states.js';
import {
  ExportAction,
  ExportBar,
  exportPollMs,
  ExportStatus,
  isUnfinished,
} from '../exports/export-progress.js';
import { useDepartments } from '../members/user-dialog.js';
import { departmentsAbove } from './department-slices.js';
import { LazyUsageChart } from './lazy-chart.js';
import { fittingGranularity, shareOf } from './prepare-chart.js';
import { bookedMs, useUsageChart, type UsageFilter } from './use-usage-chart.js';
import { usageMetrics, type UsageMetric, type UsageSearch } from './usage-search.js';

const groupings = ['department', 'user', 'key', 'model', 'provider', 'none'] as const;
const dayMs = 86_400_000;

/** Clicking a group narrows the view to it and shows what it is made of. */
const drill: Partial<
  Record<
    UsageGrouping,
    { filter: 'departmentId' | 'userId' | 'keyId' | 'model'; next: UsageGrouping }
  >
> = {
  department: { filter: 'departmentId', next: 'user' },
  user: { filter: 'userId', next: 'key' },
  key: { filter: 'keyId', next: 'model' },
  model: { filter: 'model', next: 'department' },
};

function rangeOf(search: UsageSearch, nowMs: number, zone: string): DateRange {
  if (search.range === 'custom' && search.from && search.to && search.from <= search.to) {
    return { from: search.from, to: shiftDays(search.to, 1) };
  }
  return presetRange(
    search.range === undefined || search.range === 'custom' ? 'month' : search.range,
    nowMs,
    zone,
  );
}

/** What was booked, by any grouping; every choice is in the address. */
export function UsagePage() {
  const { t } = useTranslation();
  const format = useFormat();
  const search = useSearch({ from: '/_app/usage' });
  const navigate = useNavigate({ from: '/usage' });
  // The day may turn while the page is open; a fresh look at it is one reload away and shown by the dates.
  const [openedAtMs] = useState(() => Date.now());
  const range = rangeOf(search, openedAtMs, format.zone);
  const metric = search.metric ?? 'cost';
  const groupBy = search.groupBy ?? 'department';
  const days = Math.round((Date.parse(range.to) - Date.parse(range.from)) / dayMs);
  const granularity = search.granularity ?? fittingGranularity(days);
  const filters = {
    ...range,
    ...(search.departmentId ? { departmentId: search.departmentId } : {}),
    ...(search.userId ? { userId: search.userId } : {}),
    ...(search.keyId ? { keyId: search.keyId } : {}),
    ...(search.model ? { model: search.model } : {}),
  };
  const { chart, error, retry } = useUsageChart({
    filter: filters,
    groupBy,
    granularity,
    metric,
    zone: format.zone,
  });
  const groups = api.useQuery(
    'get',
    '/api/v1/usage',
    { params: { query: { ...filters, groupBy, granularity: 'none' as const } } },
    { refetchInterval: bookedMs, placeholderData: keepPreviousData },
  );
  const above = useDepartmentsAbove(groupBy === 'department' ? search.departmentId : undefined);
  const set = (change: Partial<UsageSearch>) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true });
  const filtered = Boolean(search.departmentId || search.userId || search.keyId || search.model);

  return (
    <>
      <PageHeader
        title={t('page.usage')}
        note={
          <span className="tabular">
            {t('usage.rangeNote', {
              from: range.from,
              to: shiftDays(range.to, -1),
              zone: format.zone,
            })}
          </span>
        }
        actions={<ExportButton filters={filters} onStarted={(id) => set({ export: id })} />}
      />
      <Filters
        search={search}
        range={range}
        granularity={granularity}
        onChange={set}
        names={groups.data}
      />
      {search.export && (
        <ExportCard id={search.export} onClose={() => set({ export: undefined })} />
      )}
      <Totals report={groups.data} />
      <Panel
        title={t('usage.over', { metric: t(`metric.${metric}`) })}
        actions={
          <Segmented
            label={t('usage.metric')}
            value={metric}
            options={usageMetrics.map((value) => ({ value, label: t(`metric.${value}`) }))}
            onChange={(value) => set({ metric: value })}
          />
        }
      >
        {error ? (
          <ErrorState error={error} onRetry={retry} />
        ) : !chart ? (
          <Loading rows={7} />
        ) : chart.empty ? (
          <Nothing filtered={filtered} onClear={() => set(noFilters)} />
        ) : (
          <LazyUsageChart chart={chart} metric={metric} />
        )}
      </Panel>
      <Panel
        flush
        title={t('usage.by', { grouping: t(`grouping.${groupBy}`) })}
        note={
          groupBy === 'department'
            ? t('usage.nested')
            : groups.data && t('usage.groups', { groups: groups.data.rows.length })
        }
      >
        {groups.error && !groups.data ? (
          <ErrorState error={groups.error} onRetry={() => void groups.refetch()} />
        ) : !groups.data ? (
          <Loading rows={6} />
        ) : groups.data.rows.length === 0 ? (
          <Nothing filtered={filtered} onClear={() => set(noFilters)} />
        ) : (
          <GroupTable
            report={groups.data}
            hidden={above}
            metric={metric}
            groupBy={groupBy}
            onDrill={(row) => {
              const step = drill[groupBy];
              if (step && row.groupId !== null) {
                set({ [step.filter]: row.groupId, groupBy: step.next });
              }
            }}
          />
        )}
      </Panel>
    </>
  );
}

const noFilters = {
  departmentId: undefined,
  userId: undefined,
  keyId: undefined,
  model: undefined,
} as const;

function Nothing({ filtered, onClear }: { filtered: boolean; onClear: () => void }) {
  const { t } = useTranslation();
  return filtered ? (
    <State
      kind="filtered"
      title={t('state.filtered')}
      text={t('state.filteredText')}
      action={<Button onClick={onClear}>{t('usage.clearFilters')}</Button>}
    />
  ) : (
    <State kind="empty" title={t('usage.none')} text={t('usage.noneText')} />
  );
}

function Filters({
  search,
  range,
  granularity,
  names,
  onChange,
}: {
  search: UsageSearch;
  range: DateRange;
  granularity: 'hour' | 'day' | 'month';
  names: UsageReport | undefined;
  onChange: (change: Partial<UsageSearch>) => void;
}) {
  const { t } = useTranslation();
  const departments = useDepartments();
  const models = api.useQuery('get', '/api/v1/models', {}, { staleTime: 60_000 });
  const custom = search.range === 'custom';
  const lastDay = shiftDays(range.to, -1);
  return (
    <div className="flex flex-wrap items-end gap-x-3 gap-y-2 max-sm:grid max-sm:grid-cols-2">
      <Field label={t('usage.range')}>
        {(props) => (
          <Select
            className="w-full sm:w-36"
            value={search.range ?? 'month'}
            options={rangePresets.map((value) => ({ value, label: t(`range.${value}`) }))}
            onChange={({ target }) => {
              const next = rangePresets.find((preset) => preset === target.value);
              onChange(
                next === 'custom'
                  ? { range: next, from: range.from, to: lastDay }
                  : { range: next, from: undefined, to: undefined },
              );
            }}
            {...props}
          />
        )}
      </Field>
      {custom && (
        <>
          <Field label={t('usage.from')}>
            {(props) => (
              <Input
                type="date"
                className="w-full sm:w-36"
                value={search.from ?? range.from}
                max={search.to}
                onChange={({ target }) => target.value && onChange({ from: target.value })}
                {...props}
              />
            )}
          </Field>
          <Field label={t('usage.to')}>
            {(props) => (
              <Input
                type="date"
                className="w-full sm:w-36"
                value={search.to ?? lastDay}
                min={search.from}
                onChange={({ target }) => target.value && onChange({ to: target.value })}
                {...props}
              />
            )}
          </Field>
        </>
      )}
      <Field label={t('usage.groupBy')}>
        {(props) => (
          <Select
            className="w-full sm:w-36"
            value={search.groupBy ?? 'department'}
            options={groupings.map((value) => ({ value, label: t(`grouping.${value}`) }))}
            onChange={({ target }) =>
              onChange({ groupBy: groupings.find((value) => value === target.value) })
            }
            {...props}
          />
        )}
      </Field>
      <Field label={t('usage.granularity')}>
        {(props) => (
          <Select
            className="w-full sm:w-28"
            value={granularity}
            options={(['hour', 'day', 'month'] as const).map((value) => ({
              value,
              label: t(`granularity.${value}`),
            }))}
            onChange={({ target }) =>
              onChange({
                granularity: (['hour', 'day', 'month'] as const).find(
                  (value) => value === target.value,
                ),
              })
            }
            {...props}
          />
        )}
      </Field>
      <Field label={t('level.department')}>
        {(props) => (
          <Select
            className="w-full sm:w-44"
            value={search.departmentId ?? ''}
            options={[{ value: '', label: t('usage.allDepartments') }, ...departments]}
            onChange={({ target }) => onChange({ departmentId: target.value || undefined })}
            {...props}
          />
        )}
      </Field>
      <Field label={t('limit.model')}>
        {(props) => (
          <Select
            className="w-full sm:w-40"
            value={search.model ?? ''}
            options={[
              { value: '', label: t('limit.allModels') },
              ...(models.data?.items ?? []).map(({ alias }) => ({ value: alias, label: alias })),
            ]}
            onChange={({ target }) => onChange({ model: target.value || undefined })}
            {...props}
          />
        )}
      </Field>
      {(['userId', 'keyId'] as const).map((filter) => {
        const id = search[filter];
        return (
          id && (
            <FilterChip
              key={filter}
              level={filter === 'userId' ? 'user' : 'key'}
              id={id}
              known={names?.rows.find(({ groupId }) => groupId === id)?.groupName ?? null}
              onRemove={() => onChange({ [filter]: undefined })}
            />
          )
        );
      })}
    </div>
  );
}

/** A narrowing to one user or key, by name where the node still exists. */
function FilterChip({
  level,
  id,
  known,
  onRemove,
}: {
  level: 'user' | 'key';
  id: string;
  known: string | null;
  onRemove: () => void;
}) {
  const { t } = useTranslation();
  const node = api.useQuery(
    'get',
    '/api/v1/nodes/{id}',
    { params: { path: { id } } },
    { staleTime: 60_000, enabled: known === null },
  );
  return (
    <span className="inline-flex h-8 items-center gap-1 rounded-md bg-accent-soft pr-0.5 pl-2.5 text-accent">
      {t('org.scope', {
        level: t(`level.${level}`),
        name: known ?? node.data?.name ?? id.slice(0, 8),
      })}
      <IconButton size="icon-sm" label={t('usage.clearFilter')} icon={<X />} onClick={onRemove} />
    </span>
  );
}

function Totals({ report }: { report: UsageReport | undefined }) {
  const { t } = useTranslation();
  const format = useFormat();
  if (!report) return null;
  const { totals } = report;
  return (
    <Panel>
      <div className="grid grid-cols-2 gap-x-6 gap-y-4 md:grid-cols-5">
        <Figure
          label={t('metric.cost')}
          note={
            <span className="tabular">
              {t('usage.exactly', {
                amount: format.exactMoney(totals.cost),
                currency: report.currency,
              })}
            </span>
          }
        >
          <Money text={totals.cost} testId="usage-total-cost" />
        </Figure>
        <Figure label={t('metric.requests')} note={t('usage.requestsNote')}>
          <Count text={totals.requests} />
        </Figure>
        <Figure label={t('metric.tokens')}>
          <Count text={totals.tokens} />
        </Figure>
        <Figure
          label={t('metric.input_tokens')}
          note={
            <span className="tabular">
              {t('usage.cached', { tokens: format.count(totals.cachedInputTokens) })}
            </span>
          }
        >
          <Count text={totals.inputTokens} />
        </Figure>
        <Figure label={t('metric.output_tokens')}>
          <Count text={totals.outputTokens} />
        </Figure>
      </div>
      <p className="tabular mt-3 border-t border-line pt-2 text-xs text-ink-3">
        {report.completeUpTo
          ? t('books.completeUpToZone', {
              at: format.dateTime(report.completeUpTo),
              zone: report.timeZone,
            })
          : t('books.nothingYet')}
      </p>
    </Panel>
  );
}

/** A report for one department repeats it as each of those above; they are left out of the table. */
function useDepartmentsAbove(focus: string | undefined): ReadonlySet<string> {
  const { data } = api.useQuery('get', '/api/v1/organisation', {}, { staleTime: 30_000 });
  return departmentsAbove(data?.nodes ?? [], focus ?? null);
}

function GroupTable({
  report,
  hidden,
  metric,
  groupBy,
  onDrill,
}: {
  report: UsageReport;
  hidden: ReadonlySet<string>;
  metric: UsageMetric;
  groupBy: UsageGrouping;
  onDrill: (row: UsageRow) => void;
}) {
  const { t } = useTranslation();
  const drillable = drill[groupBy] !== undefined;
  const name = (row: UsageRow) => row.groupName ?? row.groupId ?? t('usage.allUsage');
  const figure = (
    field: 'cost' | 'tokens' | 'requests' | 'inputTokens' | 'outputTokens',
    header: string,
    wideOnly = false,
  ): ColumnDef<UsageRow> => ({
    id: field,
    header,
    sortingFn: (a, b) => compareText(a.original[field], b.original[field]),
    sortDescFirst: true,
    accessorFn: (row) => row[field],
    cell: ({ row: { original: row } }) =>
      field === 'cost' ? <Money text={row.cost} /> : <Count text={row[field]} />,
    meta: { align: 'right', wideOnly },
  });
  const columns: ColumnDef<UsageRow>[] = [
    {
      id: 'name',
      header: t(`grouping.${groupBy}`),
      accessorFn: name,
      cell: ({ row: { original: row } }) => (
        <span className="flex items-center gap-2">
          {drillable ? (
            <button
              type="button"
              onClick={() => onDrill(row)}
              className="truncate font-medium hover:text-accent hover:underline"
            >
              {name(row)}
            </button>
          ) : (
            <span className="truncate font-medium">{name(row)}</span>
          )}
          {row.deleted && <Badge>{t('status.deleted')}</Badge>}
        </span>
      ),
    },
    figure('cost', t('metric.cost')),
    {
      id: 'share',
      header: t('usage.share'),
      enableSorting: false,
      cell: ({ row: { original: row } }) => {
        const share = shareOf(row, report.totals, metric);
        return (
          <span className="flex items-center justify-end gap-2">
            <span
              aria-hidden
              className="h-1.5 w-20 overflow-hidden rounded-full bg-sunken max-lg:hidden"
            >
              <span
                className="block h-full bg-accent"
                style={{ width: `${Math.min(share, 10_000) / 100}%` }}
              />
            </span>
            <span className="w-14">{percentText(share, /^0(\.0+)?$/.test(row[metric]))}</span>
          </span>
        );
      },
      meta: { align: 'right', wideOnly: true },
    },
    figure('requests', t('metric.requests')),
    figure('tokens', t('metric.tokens')),
    figure('inputTokens', t('metric.input_tokens'), true),
    figure('outputTokens', t('metric.output_tokens'), true),
  ];
  const { totals } = report;
  const cell =
    'sticky bottom-0 h-9 border-t border-line-strong bg-surface px-3 first:pl-4 last:pr-4';
  return (
    <DataTable
      label={t('usage.by', { grouping: t(`grouping.${groupBy}`) })}
      rows={report.rows.filter(({ groupId }) => groupId === null || !hidden.has(groupId))}
      columns={columns}
      rowId={(row) => row.groupId ?? 'all'}
      sortable
      sorting={[{ id: metric, desc: true }]}
      footer={
        <tfoot>
          <tr className="font-semibold">
            <th scope="row" className={cell}>
              {t('usage.total')}
            </th>
            <td className={`${cell} text-right`}>
              <Money text={totals.cost} />
            </td>
            <td className={`${cell} max-md:hidden`} />
            <td className={`${cell} text-right`}>
              <Count text={totals.requests} />
            </td>
            <td className={`${cell} text-right`}>
              <Count text={totals.tokens} />
            </td>
            <td className={`${cell} text-right max-md:hidden`}>
              <Count text={totals.inputTokens} />
            </td>
            <td className={`${cell} text-right max-md:hidden`}>
              <Count text={totals.outputTokens} />
            </td>
          </tr>
        </tfoot>
      }
    />
  );
}

function ExportButton({
  filters,
  onStarted,
}: {
  filters: UsageFilter;
  onStarted: (id: string) => void;
}) {
  const { t } = useTranslation();
  const denied = useDenied()('exports.run');
  const start = api.useMutation('post', '/api/v1/exports', {
    onSuccess: ({ id }) => onStarted(id),
    onError: (error) => {
      const fault = asApiError(error);
      toast.error(`${t(`error.${fault.code}`)} ${fault.message}`);
    },
  });
  return (
    <Button
      variant="primary"
      icon={<FileDown />}
      denied={denied}
      busy={start.isPending}
      data-testid="export-button"
      onClick={() => start.mutate({ body: { kind: 'usage-csv', profile: 'excel', ...filters } })}
    >
      {t('usage.export')}
    </Button>
  );
}

/** The export that was started here; its id is in the address, so that a reload finds it again. */
function ExportCard({ id, onClose }: { id: string; onClose: () => void }) {
  const { t } = useTranslation();
  const format = useFormat();
  const job = api.useQuery(
    'get',
    '/api/v1/exports/{id}',
    { params: { path: { id } } },
    {
      refetchInterval: ({ state }) =>
        state.data && !isUnfinished(state.data) ? false : exportPollMs,
    },
  );
  const row = job.data;
  return (
    <section
      aria-label={t('exports.one')}
      data-testid="export-card"
      className="flex flex-wrap items-center gap-x-4 gap-y-2 rounded-lg border border-line bg-surface px-4 py-2.5 shadow-card"
    >
      {job.error && !row ? (
        <ErrorState error={job.error} onRetry={() => void job.refetch()} />
      ) : !row ? (
        <Loading rows={1} />
      ) : (
        <>
          <div className="flex items-center gap-2">
            <span className="font-medium">{t('exports.one')}</span>
            <ExportStatus row={row} />
          </div>
          <div className="w-56 max-sm:w-full">
            <ExportBar row={row} />
          </div>
          {row.totalCost !== null && (
            <span className="text-xs text-ink-2">
              {t('exports.totalIs')}{' '}
              <data value={row.totalCost} data-testid="export-total-cost" className="tabular">
                {format.exactMoney(row.totalCost)}
              </data>
            </span>
          )}
          {row.failure && <span className="text-xs text-bad">{row.failure}</span>}
          <span className="ml-auto flex items-center gap-2">
            <ExportAction row={row} />
            <Link to="/exports" className="text-xs text-accent hover:underline">
              {t('exports.all')}
            </Link>
          </span>
        </>
      )}
      <IconButton size="icon-sm" label={t('action.close')} icon={<X />} onClick={onClose} />
    </section>
  );
}
