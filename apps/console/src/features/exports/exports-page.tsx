import { Link } from '@tanstack/react-router';
import type { ColumnDef } from '@tanstack/react-table';
import { useTranslation } from 'react-i18next';
import { client } from '../../api/client.js';
import type { ExportRow } from '../../api/types.js';
import { bodyOf, usePages } from '../../api/use-pages.js';
import { shiftDays } from '../../format/dates.js';
import { useFormat } from '../../format/use-format.js';
import { Money, When } from '../../ui/figures.js';
import { ListPanel } from '../../ui/list-panel.js';
import { PageHeader } from '../../ui/panel.js';
import {
  ExportAction,
  ExportBar,
  exportPollMs,
  ExportStatus,
  isUnfinished,
} from './export-progress.js';

const pageSize = 50;

/** The range that an export was asked for, last day included, as people say it. */
function rangeOf(request: ExportRow['request']): string | null {
  const { from, to } = request;
  if (typeof from !== 'string' || typeof to !== 'string') return null;
  return `${from} – ${shiftDays(to, -1)}`;
}

/** All exports. A job goes on when the page is closed, and is found here again. */
export function ExportsPage() {
  const { t } = useTranslation();
  const format = useFormat();
  const pages = usePages(
    ['/api/v1/exports'],
    async (cursor, signal) =>
      bodyOf(
        await client.GET('/api/v1/exports', {
          signal,
          params: { query: { limit: pageSize, ...(cursor ? { cursor } : {}) } },
        }),
      ),
    { refetchInterval: (items) => (items.some(isUnfinished) ? exportPollMs : false) },
  );
  const columns: ColumnDef<ExportRow>[] = [
    {
      id: 'created',
      header: t('field.created'),
      cell: ({ row: { original: row } }) => (
        <>
          <When at={row.createdAt} />
          <p className="truncate text-xs text-ink-3">{row.requestedBy}</p>
        </>
      ),
    },
    {
      id: 'range',
      header: t('exports.range'),
      cell: ({ row: { original: row } }) => (
        <>
          <span className="tabular">{rangeOf(row.request) ?? t('state.none')}</span>
          <p className="text-xs text-ink-3">
            {t(row.profile === 'excel' ? 'exports.excel' : 'exports.machine')}
          </p>
        </>
      ),
      meta: { wideOnly: true },
    },
    {
      id: 'status',
      header: t('field.status'),
      cell: ({ row: { original: row } }) => (
        <>
          <ExportStatus row={row} />
          {row.failure && <p className="mt-0.5 max-w-64 text-xs text-bad">{row.failure}</p>}
        </>
      ),
    },
    {
      id: 'rows',
      header: t('exports.rowsHead'),
      cell: ({ row: { original: row } }) =>
        isUnfinished(row) ? <ExportBar row={row} /> : format.count(row.rowsDone),
      meta: { align: 'right' },
    },
    {
      id: 'total',
      header: t('exports.total'),
      cell: ({ row: { original: row } }) =>
        row.totalCost === null ? t('state.none') : <Money text={row.totalCost} />,
      meta: { align: 'right' },
    },
    {
      id: 'checksum',
      header: t('exports.checksum'),
      cell: ({ row: { original: row } }) =>
        row.fileSha256 === null ? (
          t('state.none')
        ) : (
          <code className="block w-32 truncate font-mono text-xs text-ink-2" title={row.fileSha256}>
            {row.fileSha256}
          </code>
        ),
      meta: { wideOnly: true },
    },
    {
      id: 'controls',
      header: () => <span className="sr-only">{t('field.actions')}</span>,
      cell: ({ row: { original: row } }) => <ExportAction row={row} />,
      meta: { align: 'right' },
    },
  ];
  return (
    <>
      <PageHeader
        title={t('page.exports')}
        note={t('exports.note')}
        actions={
          <Link
            to="/usage"
            className="inline-flex h-8 items-center rounded-md bg-accent px-3 font-medium text-on-accent hover:bg-accent-strong"
          >
            {t('exports.new')}
          </Link>
        }
      />
      <ListPanel
        label={t('page.exports')}
        pages={pages}
        columns={columns}
        rowId={({ id }) => id}
        filtered={false}
        empty={{ title: t('exports.none'), text: t('exports.noneText') }}
      />
    </>
  );
}
