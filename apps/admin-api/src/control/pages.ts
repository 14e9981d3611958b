import { isId } from '@weir/domain';
import { validationError } from '@weir/platform';

/** Newest first by id (UUIDv7): the cursor is the last id that the caller has. */
export function beforeCursor(cursor: string | undefined): { id?: { lt: string } } {
  if (cursor === undefined) return {};
  if (!isId(cursor)) throw cursorFault();
  return { id: { lt: cursor } };
}

export function cursorFault() {
  return validationError([
    {
      path: ['cursor'],
      message: 'is not a cursor of this list: send the nextCursor of its last answer',
    },
  ]);
}

/** Cuts the one row too many that was asked for, to know whether there are more. */
export function pageOf<Row extends { id: string }, Item>(
  rows: readonly Row[],
  limit: number,
  itemOf: (row: Row) => Item,
): { items: Item[]; nextCursor: string | null } {
  const shown = rows.slice(0, limit);
  return {
    items: shown.map(itemOf),
    nextCursor: rows.length > limit ? (shown.at(-1)?.id ?? null) : null,
  };
}
