import { DateTime } from 'luxon';

/** Instants are always shown in the enterprise's zone, in one form that both languages read the same. */

export function dateTimeText(instant: string, zone: string): string {
  return DateTime.fromISO(instant, { zone }).toFormat('yyyy-MM-dd HH:mm:ss');
}

export function minuteText(instant: string, zone: string): string {
  return DateTime.fromISO(instant, { zone }).toFormat('yyyy-MM-dd HH:mm');
}

/** Only the clock when the instant is of today, else with the date. */
export function shortInstantText(instant: string, zone: string, nowMs: number): string {
  const at = DateTime.fromISO(instant, { zone });
  const today = at.hasSame(DateTime.fromMillis(nowMs, { zone }), 'day');
  return at.toFormat(today ? 'HH:mm:ss' : 'yyyy-MM-dd HH:mm');
}

/** `in 3 days`, `2 minutes ago`, in the language. */
export function relativeText(instant: string, nowMs: number, language: string): string {
  const seconds = Math.round((Date.parse(instant) - nowMs) / 1000);
  const format = new Intl.RelativeTimeFormat(language, { numeric: 'always', style: 'short' });
  const magnitude = Math.abs(seconds);
  if (magnitude < 60) return format.format(seconds, 'second');
  if (magnitude < 3600) return format.format(Math.trunc(seconds / 60), 'minute');
  if (magnitude < 86_400) return format.format(Math.trunc(seconds / 3600), 'hour');
  return format.format(Math.trunc(seconds / 86_400), 'day');
}

export const rangePresets = ['month', 'last-month', '7d', '30d', 'custom'] as const;
export type RangePreset = (typeof rangePresets)[number];

/** Local dates; `from` inclusive, `to` exclusive, as the API takes them. */
export type DateRange = { readonly from: string; readonly to: string };

/** The dates of a preset in the zone. Presets that reach to now end with today. */
export function presetRange(
  preset: Exclude<RangePreset, 'custom'>,
  nowMs: number,
  zone: string,
): DateRange {
  const today = DateTime.fromMillis(nowMs, { zone }).startOf('day');
  const tomorrow = today.plus({ days: 1 });
  const month = today.startOf('month');
  const iso = (date: DateTime) => date.toFormat('yyyy-MM-dd');
  switch (preset) {
    case 'month':
      return { from: iso(month), to: iso(tomorrow) };
    case 'last-month':
      return { from: iso(month.minus({ months: 1 })), to: iso(month) };
    case '7d':
      return { from: iso(tomorrow.minus({ days: 7 })), to: iso(tomorrow) };
    case '30d':
      return { from: iso(tomorrow.minus({ days: 30 })), to: iso(tomorrow) };
  }
}

/** The day before or after a local date. */
export function shiftDays(date: string, days: number): string {
  return DateTime.fromISO(date, { zone: 'utc' }).plus({ days }).toFormat('yyyy-MM-dd');
}

const periodFormats = { hour: "yyyy-MM-dd'T'HH:mm", day: 'yyyy-MM-dd', month: 'yyyy-MM' } as const;

/**
 * Every hour, day or month of a range, so that a chart shows the empty ones too. At most `bound` of them.
 * Walks instants in the zone: the hour that daylight saving skips is not listed, the doubled one once.
 */
export function periodsOf(
  range: DateRange,
  granularity: 'hour' | 'day' | 'month',
  zone: string,
  bound = 2000,
): string[] {
  const end = DateTime.fromISO(range.to, { zone });
  const periods: string[] = [];
  let at = DateTime.fromISO(range.from, { zone }).startOf(granularity);
  while (at < end && periods.length < bound) {
    const text = at.toFormat(periodFormats[granularity]);
    if (periods.at(-1) !== text) periods.push(text);
    at = at.plus({ [granularity]: 1 });
  }
  return periods;
}
