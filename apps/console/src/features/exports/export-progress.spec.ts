import { expect, it } from 'vitest';
import type { ExportRow } from '../../api/types.js';
import { exportPercent } from './export-percent.js';

const job = (rowsDone: string, rowsTotal: string | null, status: ExportRow['status'] = 'running') =>
  exportPercent({ rowsDone, rowsTotal, status });

it('progress is whole percent, 100 only at the end or when all rows are written', () => {
  expect(job('999', '1000')).toBe(99);
  expect(job('1000', '1000')).toBe(100);
  expect(job('0', '1000')).toBe(0);
  expect(job('5', null)).toBeNull();
  expect(job('0', '0')).toBeNull();
  expect(job('0', '0', 'done')).toBe(100);
  expect(job('12', '10')).toBe(100);
});
