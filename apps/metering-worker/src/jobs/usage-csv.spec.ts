import { newId } from '@weir/domain';
import type { UsageRow } from '@weir/persistence';
import { describe, expect, it } from 'vitest';
import { csvHeader, csvLines, neutralise } from './usage-csv.js';

const row: UsageRow = {
  eventId: newId(),
  requestId: 'r-1',
  kind: 'usage',
  adjusts: null,
  attempt: 1,
  reservedAt: new Date('2026-11-29T10:00:00.125Z'),
  startedAt: new Date('2026-11-29T10:00:00.130Z'),
  firstTokenAt: null,
  endedAt: new Date('2026-11-29T10:00:01Z'),
  periodId: '2026-11',
  departmentIds: [newId(), newId()],
  departmentNames: ['市场部', 'Ads, "EMEA"'],
  userId: newId(),
  userName: '李伟 🚀',
  keyId: newId(),
  keyName: '=HYPERLINK("http://evil")',
  modelAsked: 'demo-large',
  modelServed: 'demo-large-2026',
  providerName: 'demo',
  route: '/v1/chat/completions',
  streamed: true,
  status: 'ok',
  estimated: false,
  late: false,
  inputTokens: 9_007_199_254_740_993n,
  cachedInputTokens: 0n,
  cacheWriteTokens: 0n,
  audioInputTokens: 0n,
  imageInputTokens: 0n,
  outputTokens: 200n,
  reasoningTokens: 0n,
  audioOutputTokens: 0n,
  costPico: 4_500_000_001n,
  costNano: 4_500_001n,
  currency: 'USD',
  priceVersionId: newId(),
  tags: {},
};

/** A reader of RFC 4180, written apart from the writer. */
function parseCsv(text: string): string[][] {
  const records: string[][] = [[]];
  let cell = '';
  let quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at] ?? '';
    if (quoted) {
      if (char !== '"') cell += char;
      else if (text[at + 1] === '"') cell += text[(at += 1)];
      else quoted = false;
    } else if (char === '"') quoted = true;
    else if (char === ',') {
      records.at(-1)?.push(cell);
      cell = '';
    } else if (char === '\n') {
      records.at(-1)?.push(cell.replace(/\r$/, ''));
      cell = '';
      records.push([]);
    } else cell += char;
  }
  return records.slice(0, -1);
}

function cellsOf(of: UsageRow, zone = 'Asia/Shanghai'): Record<string, string> {
  const [header = [], cells = []] = parseCsv(
    csvHeader('machine') + csvLines([of], 'machine', zone),
  );
  expect(cells).toHaveLength(header.length);
  return Object.fromEntries(header.map((name, index) => [name, cells[index] ?? '']));
}

describe('the usage CSV', () => {
  it('begins with a byte order mark and ends its lines with CRLF for Excel, and does neither for machines', () => {
    const excel = csvHeader('excel') + csvLines([row], 'excel', 'UTC');
    expect([...Buffer.from(excel).subarray(0, 3)]).toEqual([0xef, 0xbb, 0xbf]);
    expect(excel.split('\r\n')).toHaveLength(3);
    const machine = csvHeader('machine') + csvLines([row], 'machine', 'UTC');
    expect(machine.startsWith('event_id,')).toBe(true);
    expect(machine).not.toContain('\r');
  });

  it('keeps names with commas, quotes, line breaks, Chinese and emoji as they are', () => {
    const hard = 'a,b "c"\nd\r\ne';
    const cells = cellsOf({
      ...row,
      userName: hard,
      departmentNames: ['市场部', 'Ads, "EMEA" 🚀'],
    });
    expect(cells['user']).toBe(hard);
    expect(cells['department']).toBe('Ads, "EMEA" 🚀');
    expect(cells['department_path']).toBe('市场部 / Ads, "EMEA" 🚀');
  });

  it.each(['=1+1', '+1', '-1', '@SUM(A1)', '\tx', '\rx', '\nx', '＝1', '＋1', '－1', '＠x'])(
    'neutralises the text %j, in whichever column a person chose it',
    (text) => {
      expect(neutralise(text)).toBe(`'${text}`);
      const cells = cellsOf({
        ...row,
        keyName: text,
        userName: text,
        requestId: text,
        modelAsked: text,
        departmentNames: [text],
      });
      for (const column of [
        'key',
        'user',
        'request_id',
        'model',
        'department',
        'department_path',
      ]) {
        expect(cells[column]).toBe(`'${text}`);
      }
    },
  );

  it('leaves an ordinary text alone', () => {
    for (const text of ['Ads', 'a=b', '1-2', '', '市场部', "'quoted'"]) {
      expect(neutralise(text)).toBe(text);
    }
  });

  it('writes negative money as a number, exact to the last digit', () => {
    const cells = cellsOf({ ...row, kind: 'adjustment', costPico: -1_234_567n, costNano: -1_235n });
    expect(cells['cost']).toBe('-0.000001234567');
    expect(cells['cost_charged']).toBe('-0.000001235');
    expect(cellsOf(row)['input_tokens']).toBe('9007199254740993');
  });

  it('prints the zone and the local time beside the instant', () => {
    expect(cellsOf(row, 'America/St_Johns')).toMatchObject({
      reserved_at: '2026-11-29T10:00:00.125Z',
      reserved_at_local: '2026-11-29T06:30:00.125-03:30',
      time_zone: 'America/St_Johns',
    });
  });
});
