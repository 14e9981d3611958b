import { formatNano, formatPico } from '@weir/domain';
import type { UsageRow } from '@weir/persistence';
import { stringify } from 'csv-stringify/sync';
import { DateTime } from 'luxon';

/** `excel`: UTF-8 with a byte order mark and CRLF, so that Excel reads Chinese right. `machine`: neither. */
export type CsvProfile = 'excel' | 'machine';

type Column = {
  readonly name: string;
  /** Texts are neutralised; numbers and instants are ours and must stay what they are. */
  readonly kind: 'text' | 'number';
  readonly value: (row: UsageRow, timeZone: string) => string;
};

const text = (name: string, value: Column['value']): Column => ({ name, kind: 'text', value });
const number = (name: string, value: Column['value']): Column => ({ name, kind: 'number', value });
const instant = (at: Date | null): string => at?.toISOString() ?? '';

const columns: readonly Column[] = [
  text('event_id', (row) => row.eventId),
  text('request_id', (row) => row.requestId),
  number('attempt', (row) => String(row.attempt)),
  text('kind', (row) => row.kind),
  text('adjusts', (row) => row.adjusts ?? ''),
  number('reserved_at', (row) => instant(row.reservedAt)),
  number('reserved_at_local', (row, zone) => local(row.reservedAt, zone)),
  number('time_zone', (_row, zone) => zone),
  number('started_at', (row) => instant(row.startedAt)),
  number('first_token_at', (row) => instant(row.firstTokenAt)),
  number('ended_at', (row) => instant(row.endedAt)),
  text('period', (row) => row.periodId),
  text('department_path', (row) => row.departmentNames.join(' / ')),
  text('department_id', (row) => row.departmentIds.at(-1) ?? ''),
  text('department', (row) => row.departmentNames.at(-1) ?? ''),
  text('user_id', (row) => row.userId),
  text('user', (row) => row.userName),
  text('key_id', (row) => row.keyId),
  text('key', (row) => row.keyName),
  text('model', (row) => row.modelAsked),
  text('model_served', (row) => row.modelServed),
  text('provider', (row) => row.providerName),
  text('route', (row) => row.route),
  text('streamed', (row) => String(row.streamed)),
  text('status', (row) => row.status),
  text('estimated', (row) => String(row.estimated)),
  text('late', (row) => String(row.late)),
  number('input_tokens', (row) => String(row.inputTokens)),
  number('cached_input_tokens', (row) => String(row.cachedInputTokens)),
  number('cache_write_tokens', (row) => String(row.cacheWriteTokens)),
  number('audio_input_tokens', (row) => String(row.audioInputTokens)),
  number('image_input_tokens', (row) => String(row.imageInputTokens)),
  number('output_tokens', (row) => String(row.outputTokens)),
  number('reasoning_tokens', (row) => String(row.reasoningTokens)),
  number('audio_output_tokens', (row) => String(row.audioOutputTokens)),
  number('cost', (row) => formatPico(row.costPico)),
  number('cost_charged', (row) => formatNano(row.costNano)),
  text('currency', (row) => row.currency),
  text('price_version_id', (row) => row.priceVersionId),
  text('tags', (row) => (Object.keys(row.tags).length === 0 ? '' : JSON.stringify(row.tags))),
];

function local(at: Date, zone: string): string {
  return DateTime.fromJSDate(at, { zone }).toISO() ?? '';
}

/**
 * What a spreadsheet would run as a formula, in its plain and full-width forms; also behind a line break or a tab,
 * which some of them strip. https://owasp.org/www-community/attacks/CSV_Injection
 */
const formulaStart = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

/** Puts an apostrophe before a text that a spreadsheet would take for a formula. */
export function neutralise(cell: string): string {
  return formulaStart.test(cell) ? `'${cell}` : cell;
}

const byteOrderMark = '\ufeff';
const delimiterOf = (profile: CsvProfile) => (profile === 'excel' ? '\r\n' : '\n');

/** The first line, with the byte order mark where the profile wants one. */
export function csvHeader(profile: CsvProfile): string {
  const line = stringify([columns.map(({ name }) => name)], {
    record_delimiter: delimiterOf(profile),
  });
  return profile === 'excel' ? byteOrderMark + line : line;
}

/** Lines of rows, each with its line end. Money as exact decimals of the currency's unit. */
export function csvLines(rows: readonly UsageRow[], profile: CsvProfile, timeZone: string): string {
  const cells = rows.map((row) =>
    columns.map(({ kind, value }) => {
      const cell = value(row, timeZone);
      return kind === 'text' ? neutralise(cell) : cell;
    }),
  );
  return stringify(cells, { record_delimiter: delimiterOf(profile) });
}
