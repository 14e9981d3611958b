import type { ColumnDef } from '@tanstack/react-table';
import { CircleCheck, RefreshCw, TriangleAlert } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { api } from '../../api/client.js';
import type { Reconciliation } from '../../api/types.js';
import { scaled } from '../../format/decimal.js';
import { useFormat } from '../../format/use-format.js';
import { Badge } from '../../ui/badge.js';
import { Button } from '../../ui/button.js';
import { cn } from '../../ui/cn.js';
import { DataTable } from '../../ui/data-table.js';
import { Count, Figure, When } from '../../ui/figures.js';
import { PageHeader, Panel } from '../../ui/panel.js';
import { ErrorState, Loading, State } from '../../ui/states.js';

const refreshMs = 10_000;
/** All digits that the ledger has, so that the columns align and can be compared. */
const bookDecimals = 12;
type Scope = Reconciliation['scopes'][number];

/** Whether counters, ledger and roll-ups say the same, scope by scope, and what is on its way or missing. */
export function ReconciliationPage() {
  const { t } = useTranslation();
  const report = api.useQuery('get', '/api/v1/reconciliation', {}, { refetchInterval: refreshMs });
  const { data } = report;
  return (
    <>
      <PageHeader
        title={t('page.reconciliation')}
        note={
          data && <span className="tabular">{t('books.period', { period: data.periodId })}</span>
        }
        actions={
          <Button
            icon={<RefreshCw />}
            busy={report.isFetching}
            onClick={() => void report.refetch()}
          >
            {t('action.refresh')}
          </Button>
        }
      />
      {data ? (
        <>
          <Verdict report={data} />
          <Panel flush title={t('books.byScope')}>
            <ScopeTable scopes={data.scopes} />
          </Panel>
          <Troubles report={data} />
        </>
      ) : (
        <Panel>
          {report.error ? (
            <ErrorState error={report.error} onRetry={() => void report.refetch()} />
          ) : (
            <Loading rows={8} />
          )}
        </Panel>
      )}
    </>
  );
}

function Verdict({ report }: { report: Reconciliation }) {
  const { t } = useTranslation();
  const format = useFormat();
  const { balanced, metering, at } = report;
  const Icon = balanced ? CircleCheck : TriangleAlert;
  return (
    <Panel>
      <div className="flex flex-wrap items-center gap-x-10 gap-y-4">
        <p
          data-testid="books-verdict"
          data-balanced={balanced}
          className={cn(
            'flex items-center gap-2.5 text-base font-semibold',
            balanced ? 'text-good' : 'text-bad',
          )}
        >
          <Icon aria-hidden className="size-6" />
          {t(balanced ? 'books.balanced' : 'books.notBalanced')}
        </p>
        <Figure label={t('books.completeUpToLabel')}>
          <span className="tabular text-base">
            {metering.completeUpTo ? format.dateTime(metering.completeUpTo) : t('books.nothingYet')}
          </span>
        </Figure>
        <Figure label={t('books.lagLabel')}>
          <Count text={metering.lagEvents} className="text-base" />
        </Figure>
        <Figure label={t('books.holes')}>
          <span className="tabular text-base">{metering.holes.length}</span>
        </Figure>
        <Figure label={t('books.deadLetters')}>
          <span className="tabular text-base">{metering.deadLetters}</span>
        </Figure>
        <Figure label={t('books.conflicts')}>
          <span className="tabular text-base">{metering.conflicts}</span>
        </Figure>
        <span className="tabular ml-auto text-xs text-ink-3">
          {t('books.checkedAt', { at: format.dateTime(at), zone: format.zone })}
        </span>
      </div>
    </Panel>
  );
}

function ScopeTable({ scopes }: { scopes: Scope[] }) {
  const { t } = useTranslation();
  const format = useFormat();
  if (scopes.length === 0) {
    return <State kind="empty" title={t('books.noScopes')} text={t('books.noScopesText')} />;
  }
  const source = (name: 'counter' | 'ledger' | 'rollup'): ColumnDef<Scope> => ({
    id: name,
    header: t(`books.${name}`),
    cell: ({ row: { original: scope } }) => {
      const differs = scaled(scope[name].cost) !== scaled(scope.ledger.cost);
      return (
        <>
          <span className={cn(differs && 'font-semibold text-bad')}>
            {format.exactMoney(scope[name].cost, bookDecimals)}
          </span>
          <p className="text-2xs text-ink-3">
            {t('books.figures', {
              requests: format.count(scope[name].requests),
              tokens: format.count(scope[name].tokens),
            })}
          </p>
        </>
      );
    },
    meta: { align: 'right', wideOnly: name === 'rollup' },
  });
  const columns: ColumnDef<Scope>[] = [
    {
      id: 'name',
      header: t('org.node'),
      cell: ({ row: { original: scope } }) => (
        <span className="flex items-center gap-2">
          <span className="truncate font-medium">{scope.name}</span>
          <Badge>{t(`level.${scope.level}`)}</Badge>
        </span>
      ),
    },
    source('counter'),
    source('ledger'),
    source('rollup'),
    {
      id: 'difference',
      header: t('books.difference'),
      cell: ({ row: { original: scope } }) => {
        const zero = scaled(scope.difference) === 0n;
        return (
          <span className={cn('inline-flex items-center gap-1.5', zero ? 'text-good' : 'text-bad')}>
            {zero ? (
              <CircleCheck aria-hidden className="size-3.5" />
            ) : (
              <TriangleAlert aria-hidden className="size-3.5" />
            )}
            {format.exactMoney(scope.difference, bookDecimals)}
          </span>
        );
      },
      meta: { align: 'right' },
    },
  ];
  return (
    <DataTable label={t('books.byScope')} rows={scopes} columns={columns} rowId={({ id }) => id} />
  );
}

function Troubles({ report: { metering } }: { report: Reconciliation }) {
  const { t } = useTranslation();
  if (metering.holes.length === 0 && metering.alarms.length === 0) return null;
  return (
    <Panel title={t('books.troubles')}>
      <ul className="flex flex-col gap-1.5">
        {metering.holes.map((hole) => (
          <li
            key={`${hole.shard}-${hole.epoch}-${hole.fromSeq}`}
            className="tabular flex items-center gap-2 text-bad"
          >
            <TriangleAlert aria-hidden className="size-4" />
            {t('books.hole', {
              shard: hole.shard,
              epoch: hole.epoch,
              from: hole.fromSeq,
              to: hole.toSeq,
            })}
          </li>
        ))}
        {metering.alarms.map((alarm) => (
          <li key={`${alarm.kind}-${alarm.subject}`} className="flex items-center gap-2 text-warn">
            <TriangleAlert aria-hidden className="size-4" />
            {t('books.alarm', { kind: alarm.kind, subject: alarm.subject })}
            <When at={alarm.raisedAt} className="text-xs text-ink-3" />
          </li>
        ))}
      </ul>
    </Panel>
  );
}
