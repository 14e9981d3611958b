import { DateTime, IANAZone } from 'luxon';
import type { CalendarWindow } from './limits.js';

/** A calendar period in an enterprise's zone. `startsAt` inclusive, `endsAt` exclusive, milliseconds since the Unix epoch. */
export type Period = {
  /** `2026-11-29`, `2026-W48`, `2026-11` or `total`. Sortable within one window. */
  readonly id: string;
  readonly window: CalendarWindow;
  readonly startsAt: number;
  /** null for `total`, which never ends. */
  readonly endsAt: number | null;
};

export function isTimeZone(zone: string): boolean {
  return IANAZone.isValidZone(zone);
}

const idFormats = { day: 'yyyy-MM-dd', week: "kkkk-'W'WW", month: 'yyyy-MM' } as const;

/**
 * The period that an instant falls into: exact to the second in the zone, daylight saving days and half-hour zones
 * included. Weeks are ISO weeks (Monday first).
 *
 * @throws RangeError when the zone is unknown.
 */
export function periodAt(window: CalendarWindow, atMs: number, zone: string): Period {
  if (window === 'total') return { id: 'total', window, startsAt: 0, endsAt: null };
  const local = DateTime.fromMillis(atMs, { zone, locale: 'en-US' });
  if (!local.isValid) throw new RangeError(`unknown time zone: ${zone}`);
  const start = local.startOf(window);
  return {
    id: start.toFormat(idFormats[window]),
    window,
    startsAt: start.toMillis(),
    endsAt: start
      .plus({ [window]: 1 })
      .startOf(window)
      .toMillis(),
  };
}

/** The month with the given id (`2026-11`) in the zone. */
export function monthById(id: string, zone: string): Period {
  const start = DateTime.fromFormat(id, 'yyyy-MM', { zone, locale: 'en-US' });
  if (!start.isValid) throw new RangeError(`not a month such as 2026-11: ${id}`);
  return periodAt('month', start.toMillis(), zone);
}
