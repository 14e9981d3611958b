import type { ColumnDef } from '@tanstack/react-table';
import { useTranslation } from 'react-i18next';
import { Button } from './button.js';
import { DataTable } from './data-table.js';
import { Panel } from './panel.js';
import { ErrorState, Loading, State } from './states.js';

type Pages<Row> = {
  items: Row[] | undefined;
  error: unknown;
  hasNextPage: boolean;
  isFetchingNextPage: boolean;
  fetchNextPage: () => unknown;
  refetch: () => unknown;
};

/** A list page's body: table, "more", and the right words when there is nothing to show. */
export function ListPanel<Row>({
  label,
  pages,
  columns,
  rowId,
  filtered,
  empty,
  onRowClick,
}: {
  label: string;
  pages: Pages<Row>;
  columns: ColumnDef<Row>[];
  rowId: (row: Row) => string;
  /** Whether a search or filter is on: an empty list then means something else. */
  filtered: boolean;
  empty: { title: string; text: string };
  onRowClick?: (row: Row) => void;
}) {
  const { t } = useTranslation();
  return (
    <Panel flush>
      {pages.items === undefined ? (
        pages.error ? (
          <ErrorState error={pages.error} onRetry={() => void pages.refetch()} />
        ) : (
          <Loading rows={8} />
        )
      ) : pages.items.length === 0 ? (
        filtered ? (
          <State kind="filtered" title={t('state.filtered')} text={t('state.filteredText')} />
        ) : (
          <State kind="empty" {...empty} />
        )
      ) : (
        <>
          <DataTable
            label={label}
            rows={pages.items}
            columns={columns}
            rowId={rowId}
            maxHeight="calc(100dvh - 11rem)"
            {...(onRowClick ? { onRowClick } : {})}
          />
          {pages.hasNextPage && (
            <div className="flex justify-center border-t border-line p-2">
              <Button
                size="sm"
                busy={pages.isFetchingNextPage}
                onClick={() => void pages.fetchNextPage()}
              >
                {t('action.more')}
              </Button>
            </div>
          )}
        </>
      )}
    </Panel>
  );
}
