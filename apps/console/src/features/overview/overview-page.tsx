import { Link } from '@tanstack/react-router';
import { CircleCheck } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { api } from '../../api/client.js';
import { liveMs } from '../../api/live.js';
import type { Organisation } from '../../api/types.js';
import { useMe } from '../../app/me.js';
import { presetRange } from '../../format/dates.js';
import { useFormat } from '../../format/use-format.js';
import { cn } from '../../ui/cn.js';
import { Count, Figure, Money } from '../../ui/figures.js';
import { PageHeader, Panel } from '../../ui/panel.js';
import { Segmented } from '../../ui/segmented.js';
import { ErrorState, Loading, State } from '../../ui/states.js';
import { LimitMeter, LimitPercent } from '../limits/limit-meter.js';
import { mainBar, nodesNear } from '../organisation/prepare-tree.js';
import { LazyUsageChart } from '../usage/lazy-chart.js';
import { useUsageChart } from '../usage/use-usage-chart.js';

/** From here on a node is listed, in basis points of its limit. */
const nearPoints = 8_000;
const nearMax = 8;

export function OverviewPage() {
  const { t } = useTranslation();
  const format = useFormat();
  const me = useMe();
  const organisation = api.useQuery('get', '/api/v1/organisation', {}, { refetchInterval: liveMs });
  return (
    <>
      <PageHeader
        title={t('page.overview')}
        note={<span className="tabular">{t('overview.note', { zone: format.zone })}</span>}
      />
      <Panel>
        {organisation.data ? (
          <MonthToDate organisation={organisation.data} />
        ) : organisation.error ? (
          <ErrorState error={organisation.error} onRetry={() => void organisation.refetch()} />
        ) : (
          <Loading rows={3} />
        )}
      </Panel>
      <div className="grid gap-4 xl:grid-cols-[minmax(0,1fr)_22rem]">
        <UsageByDay />
        <Panel
          flush
          title={t('overview.near')}
          note={t('overview.nearNote')}
          data-testid="nodes-near"
        >
          {organisation.data ? (
            <Near organisation={organisation.data} />
          ) : organisation.error ? (
            <ErrorState error={organisation.error} />
          ) : (
            <Loading />
          )}
        </Panel>
      </div>
      {me.permissions.includes('usage.read') && <Books />}
    </>
  );
}

/** The topmost node that the user may see: the enterprise, or a manager's own department. */
function MonthToDate({ organisation }: { organisation: Organisation }) {
  const { t } = useTranslation();
  const format = useFormat();
  const root =
    organisation.nodes.find(({ level }) => level === 'enterprise') ?? organisation.nodes[0];
  const month = root?.month;
  if (!root) return <State kind="empty" title={t('org.empty')} text={t('org.emptyText')} />;
  const bar = mainBar(root.limits.filter(({ metric }) => metric === 'cost'));
  return (
    <div className="flex flex-col gap-4">
      <div className="flex flex-col gap-2">
        <div className="flex flex-wrap items-baseline justify-between gap-x-4 gap-y-1">
          <p className="text-xs text-ink-3">
            {t('overview.budgetOf', {
              name: root.name,
              period: month?.periodId ?? t('state.none'),
            })}
          </p>
          {bar && <LimitPercent bar={bar} className="text-sm font-semibold" />}
        </div>
        <p className="text-3xl leading-9 font-semibold tracking-tight">
          {month ? <Money text={month.cost} testId="month-cost" /> : t('state.none')}
          <span className="tabular ml-2 text-base font-normal tracking-normal text-ink-3">
            {bar
              ? t('limit.of', { amount: format.amount(bar.limit.metric, bar.limit.amount ?? '0') })
              : t('limit.ofNone')}
          </span>
        </p>
        {bar ? (
          <LimitMeter thick owner={root.name} bar={bar} />
        ) : (
          <p className="text-xs text-ink-3">
            {t('overview.noBudget')}{' '}
            <Link
              to="/organisation"
              search={{ node: root.id, limit: 'new' }}
              className="font-medium text-accent hover:underline"
            >
              {t('limit.add')}
            </Link>
          </p>
        )}
      </div>
      {month ? (
        <div className="grid grid-cols-2 gap-x-6 gap-y-4 border-t border-line pt-4 md:grid-cols-5">
          <Figure label={t('metric.requests')}>
            <Count text={month.requests} />
          </Figure>
          <Figure label={t('metric.tokens')}>
            <Count text={month.tokens} />
          </Figure>
          <Figure label={t('overview.reservedCost')}>
            <Money text={month.reservedCost} />
          </Figure>
          <Figure label={t('overview.reservedTokens')}>
            <Count text={month.reservedTokens} />
          </Figure>
          <Figure label={t('org.inFlight')}>
            <span className="tabular">{month.inFlight}</span>
          </Figure>
        </div>
      ) : (
        <p role="status" className="text-xs text-warn">
          {t('org.noCounters')}
        </p>
      )}
    </div>
  );
}

function UsageByDay() {
  const { t } = useTranslation();
  const format = useFormat();
  const [groupBy, setGroupBy] = useState<'department' | 'model'>('department');
  const [openedAtMs] = useState(() => Date.now());
  const range = presetRange('30d', openedAtMs, format.zone);
  const { chart, error, retry } = useUsageChart({
    filter: range,
    groupBy,
    granularity: 'day',
    metric: 'cost',
    zone: format.zone,
  });
  return (
    <Panel
      title={t('overview.byDay')}
      note={
        <Link
          to="/usage"
          search={{ range: '30d', groupBy }}
          className="text-accent hover:underline"
        >
          {t('org.openUsage')}
        </Link>
      }
      actions={
        <Segmented
          label={t('usage.groupBy')}
          value={groupBy}
          options={[
            { value: 'department', label: t('grouping.department') },
            { value: 'model', label: t('grouping.model') },
          ]}
          onChange={setGroupBy}
        />
      }
    >
      {error ? (
        <ErrorState error={error} onRetry={retry} />
      ) : !chart ? (
        <Loading rows={7} />
      ) : chart.empty ? (
        <State kind="empty" title={t('usage.none')} text={t('usage.noneText')} />
      ) : (
        <LazyUsageChart chart={chart} metric="cost" height={385} />
      )}
    </Panel>
  );
}

function Near({ organisation }: { organisation: Organisation }) {
  const { t } = useTranslation();
  const format = useFormat();
  const near = nodesNear(organisation.nodes, nearPoints);
  if (near.length === 0) {
    return (
      <p className="flex items-center gap-2 px-4 py-6 text-good">
        <CircleCheck aria-hidden className="size-4" />
        {t('overview.noneNear')}
      </p>
    );
  }
  return (
    <ul className="divide-y divide-line">
      {near.slice(0, nearMax).map(({ node, bar }) => (
        <li key={node.id}>
          <Link
            to="/organisation"
            search={{ node: node.id }}
            className="block px-4 py-2.5 hover:bg-sunken/60"
          >
            <span className="mb-1.5 flex items-baseline gap-2">
              <span className="truncate font-medium">{node.name}</span>
              <span className="truncate text-xs text-ink-3">{format.limitName(bar.limit)}</span>
              <LimitPercent bar={bar} className="ml-auto text-xs" />
            </span>
            <LimitMeter owner={node.name} bar={bar} />
          </Link>
        </li>
      ))}
      {near.length > nearMax && (
        <li className="px-4 py-2 text-xs text-ink-3">
          {t('overview.moreNear', { more: near.length - nearMax })}
        </li>
      )}
    </ul>
  );
}

function Books() {
  const { t } = useTranslation();
  const format = useFormat();
  const status = api.useQuery('get', '/api/v1/metering', {}, { refetchInterval: 5_000 });
  const { data } = status;
  return (
    <Panel title={t('overview.books')}>
      {data ? (
        <div className="grid grid-cols-2 gap-x-6 gap-y-4 md:grid-cols-5">
          <Figure label={t('books.completeUpToLabel')} note={format.zone}>
            <span className="tabular text-base">
              {data.completeUpTo ? format.dateTime(data.completeUpTo) : t('books.nothingYet')}
            </span>
          </Figure>
          <Figure label={t('books.lagLabel')}>
            <Count text={data.lagEvents} className="text-base" />
          </Figure>
          <Figure label={t('books.holes')}>
            <span className={cn('tabular text-base', data.holes.length > 0 && 'text-bad')}>
              {data.holes.length}
            </span>
          </Figure>
          <Figure label={t('books.deadLetters')}>
            <span className={cn('tabular text-base', data.deadLetters > 0 && 'text-bad')}>
              {data.deadLetters}
            </span>
          </Figure>
          <Figure label={t('books.conflicts')}>
            <span className={cn('tabular text-base', data.conflicts > 0 && 'text-bad')}>
              {data.conflicts}
            </span>
          </Figure>
        </div>
      ) : status.error ? (
        <ErrorState error={status.error} onRetry={() => void status.refetch()} />
      ) : (
        <Loading rows={2} />
      )}
    </Panel>
  );
}
