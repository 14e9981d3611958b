import type { ExportRow } from '../../api/types.js';

/** Whole percent of the rows written, from exact counts; null while the number of rows is not known. */
export function exportPercent({
  rowsDone,
  rowsTotal,
  status,
}: Pick<ExportRow, 'rowsDone' | 'rowsTotal' | 'status'>): number | null {
  if (status === 'done') return 100;
  if (rowsTotal === null) return null;
  const total = BigInt(rowsTotal);
  if (total === 0n) return null;
  const percent = (BigInt(rowsDone) * 100n) / total;
  return Number(percent > 100n ? 100n : percent);
}
