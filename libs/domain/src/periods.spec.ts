import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { calendarWindows } from './limits.js';
import { isTimeZone, monthById, periodAt } from './periods.js';

const zones = [
  'Asia/Shanghai',
  'America/St_Johns',
  'Pacific/Pago_Pago',
  'Pacific/Kiritimati',
  'Europe/Berlin',
  'Australia/Lord_Howe',
  'UTC',
];
const hour = 3_600_000;

describe('periods', () => {
  it('turns the month at local midnight, to the second', () => {
    const turn = Date.parse('2026-12-01T00:00:00+08:00');
    expect(periodAt('month', turn - 1, 'Asia/Shanghai').id).toBe('2026-11');
    expect(periodAt('month', turn, 'Asia/Shanghai')).toEqual({
      id: '2026-12',
      window: 'month',
      startsAt: turn,
      endsAt: Date.parse('2027-01-01T00:00:00+08:00'),
    });
    const stJohns = Date.parse('2026-12-01T00:00:00-03:30');
    expect(periodAt('month', stJohns - 1, 'America/St_Johns').id).toBe('2026-11');
    expect(periodAt('month', stJohns, 'America/St_Johns').id).toBe('2026-12');
  });

  it('knows that a day can have 23 or 25 hours', () => {
    const spring = periodAt('day', Date.parse('2026-03-29T12:00:00Z'), 'Europe/Berlin');
    const autumn = periodAt('day', Date.parse('2026-10-25T12:00:00Z'), 'Europe/Berlin');
    expect((spring.endsAt ?? 0) - spring.startsAt).toBe(23 * hour);
    expect((autumn.endsAt ?? 0) - autumn.startsAt).toBe(25 * hour);
  });

  it('names ISO weeks across the turn of the year', () => {
    expect(periodAt('week', Date.parse('2027-01-02T00:00:00Z'), 'UTC').id).toBe('2026-W53');
  });

  it('covers every instant exactly once, in every zone from -11 to +14', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: Date.parse('2020-01-01'), max: Date.parse('2035-01-01') }),
        fc.constantFrom(...zones),
        fc.constantFrom(...calendarWindows),
        (at, zone, window) => {
          const period = periodAt(window, at, zone);
          expect(period.startsAt).toBeLessThanOrEqual(at);
          if (period.endsAt === null) return;
          expect(period.endsAt).toBeGreaterThan(at);
          expect(periodAt(window, period.endsAt, zone).startsAt).toBe(period.endsAt);
          expect(periodAt(window, period.startsAt, zone).id).toBe(period.id);
          expect(periodAt(window, period.endsAt - 1, zone).id).toBe(period.id);
        },
      ),
    );
  });

  it('falls on a quarter of an hour in every zone, so that roll-ups by quarter fit', () => {
    for (const zone of zones) {
      for (let month = 0; month < 36; month += 1) {
        const period = periodAt('month', Date.UTC(2025, month, 15), zone);
        expect(period.startsAt % (15 * 60_000)).toBe(0);
      }
    }
  });

  it('finds a month by its id and refuses what is none', () => {
    expect(monthById('2026-02', 'Asia/Shanghai').endsAt).toBe(
      Date.parse('2026-03-01T00:00:00+08:00'),
    );
    expect(() => monthById('2026-13', 'UTC')).toThrow(/not a month/);
    expect(isTimeZone('Mars/Olympus')).toBe(false);
    expect(() => periodAt('day', 0, 'Mars/Olympus')).toThrow(/unknown time zone/);
  });
});
