import {
  flexRender,
  getCoreRowModel,
  getSortedRowModel,
  useReactTable,
  type ColumnDef,
  type RowData,
  type SortingState,
} from '@tanstack/react-table';
import { useVirtualizer } from '@tanstack/react-virtual';
import { ArrowDown, ArrowUp } from 'lucide-react';
import { useRef, useState, type ReactNode } from 'react';
import { cn } from './cn.js';

declare module '@tanstack/react-table' {
  // The parameters must be those of the declaration that is extended.
  // eslint-disable-next-line @typescript-eslint/no-unused-vars
  interface ColumnMeta<TData extends RowData, TValue> {
    align?: 'right';
    /** Left out on narrow screens, where the row's other cells must do. */
    wideOnly?: boolean;
    className?: string;
  }
}

const rowHeightPx = 37;
/** Above this many rows only those in sight are drawn. */
const virtualFrom = 100;

type Props<Row> = {
  label: string;
  rows: Row[];
  columns: ColumnDef<Row>[];
  rowId: (row: Row) => string;
  onRowClick?: (row: Row) => void;
  /** Sorted by column at first; sorting is offered only where all rows are at hand. */
  sorting?: SortingState;
  sortable?: boolean;
  footer?: ReactNode;
  maxHeight?: string;
};

/** A table with aligned figures, sortable where all rows are at hand, and virtual when it is long. */
export function DataTable<Row>({
  label,
  rows,
  columns,
  rowId,
  onRowClick,
  sorting: initialSorting = [],
  sortable = false,
  footer,
  maxHeight = '70vh',
}: Props<Row>) {
  const [sorting, setSorting] = useState<SortingState>(initialSorting);
  const scroller = useRef<HTMLDivElement>(null);
  // eslint-disable-next-line react-hooks/incompatible-library -- table and virtualiser are not memoised by a compiler here
  const table = useReactTable({
    data: rows,
    columns,
    state: { sorting },
    onSortingChange: setSorting,
    getRowId: rowId,
    enableSorting: sortable,
    autoResetPageIndex: false,
    getCoreRowModel: getCoreRowModel(),
    getSortedRowModel: getSortedRowModel(),
  });
  const all = table.getRowModel().rows;
  const virtual = all.length > virtualFrom;
  const virtualizer = useVirtualizer({
    count: virtual ? all.length : 0,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeightPx,
    overscan: 12,
  });
  const windowed = virtualizer.getVirtualItems();
  const shown = virtual ? windowed.flatMap(({ index }) => all[index] ?? []) : all;
  const above = windowed[0]?.start ?? 0;
  const below = virtual ? virtualizer.getTotalSize() - (windowed.at(-1)?.end ?? 0) : 0;

  return (
    <div
      ref={scroller}
      className="overflow-auto"
      style={{ maxHeight }}
      tabIndex={0}
      role="group"
      aria-label={label}
    >
      <table className="w-full border-separate border-spacing-0 text-left">
        <thead>
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id}>
              {group.headers.map((header) => {
                const { meta } = header.column.columnDef;
                const direction = header.column.getIsSorted();
                const content = flexRender(header.column.columnDef.header, header.getContext());
                return (
                  <th
                    key={header.id}
                    scope="col"
                    {...(direction
                      ? { 'aria-sort': direction === 'asc' ? 'ascending' : 'descending' }
                      : {})}
                    className={cn(
                      'sticky top-0 z-10 h-9 border-b bg-surface px-3 text-xs font-medium whitespace-nowrap text-ink-3 first:pl-4 last:pr-4',
                      meta?.align === 'right' && 'text-right',
                      meta?.wideOnly && 'max-md:hidden',
                    )}
                  >
                    {header.column.getCanSort() && sortable ? (
                      <button
                        type="button"
                        onClick={header.column.getToggleSortingHandler()}
                        className="inline-flex items-center gap-1 hover:text-ink"
                      >
                        {content}
                        {direction === 'asc' && <ArrowUp aria-hidden className="size-3" />}
                        {direction === 'desc' && <ArrowDown aria-hidden className="size-3" />}
                      </button>
                    ) : (
                      content
                    )}
                  </th>
                );
              })}
            </tr>
          ))}
        </thead>
        <tbody>
          {above > 0 && (
            <tr aria-hidden>
              <td style={{ height: above }} colSpan={columns.length} />
            </tr>
          )}
          {shown.map((row) => (
            <tr
              key={row.id}
              className={cn('group hover:bg-sunken/60', onRowClick && 'cursor-pointer')}
              onClick={onRowClick && (() => onRowClick(row.original))}
            >
              {row.getVisibleCells().map((cell) => {
                const { meta } = cell.column.columnDef;
                return (
                  <td
                    key={cell.id}
                    className={cn(
                      'h-9 border-b border-line px-3 py-1.5 align-middle first:pl-4 last:pr-4',
                      meta?.align === 'right' && 'tabular text-right whitespace-nowrap',
                      meta?.wideOnly && 'max-md:hidden',
                      meta?.className,
                    )}
                  >
                    {flexRender(cell.column.columnDef.cell, cell.getContext())}
                  </td>
                );
              })}
            </tr>
          ))}
          {below > 0 && (
            <tr aria-hidden>
              <td style={{ height: below }} colSpan={columns.length} />
            </tr>
          )}
        </tbody>
        {footer}
      </table>
    </div>
  );
}
