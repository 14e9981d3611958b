import { describe, expect, it } from 'vitest';
import {
  dateTimeText,
  periodsOf,
  presetRange,
  relativeText,
  shiftDays,
  shortInstantText,
} from './dates.js';

const at = Date.parse('2026-11-30T17:30:00Z');

describe('ranges', () => {
  it('on the first of a month show that day only, in the zone that it is the first in', () => {
    expect(presetRange('month', at, 'Asia/Shanghai')).toEqual({
      from: '2026-12-01',
      to: '2026-12-02',
    });
    expect(presetRange('month', at, 'America/New_York')).toEqual({
      from: '2026-11-01',
      to: '2026-12-01',
    });
  });

  it('include today and have as many days as they say', () => {
    expect(presetRange('7d', at, 'UTC')).toEqual({ from: '2026-11-24', to: '2026-12-01' });
    expect(presetRange('30d', at, 'UTC')).toEqual({ from: '2026-11-01', to: '2026-12-01' });
    expect(presetRange('last-month', at, 'UTC')).toEqual({ from: '2026-10-01', to: '2026-11-01' });
  });

  it('shift over the end of a year', () => {
    expect(shiftDays('2026-12-31', 1)).toBe('2027-01-01');
    expect(shiftDays('2028-03-01', -1)).toBe('2028-02-29');
  });
});

describe('periods of a range', () => {
  it('are every day, empty or not', () => {
    expect(periodsOf({ from: '2026-11-28', to: '2026-12-02' }, 'day', 'Asia/Shanghai')).toEqual([
      '2026-11-28',
      '2026-11-29',
      '2026-11-30',
      '2026-12-01',
    ]);
  });

  it('leave out the hour that daylight saving skips and name the doubled one once', () => {
    const spring = periodsOf({ from: '2026-03-08', to: '2026-03-09' }, 'hour', 'America/New_York');
    expect(spring).toHaveLength(23);
    expect(spring).not.toContain('2026-03-08T02:00');
    const autumn = periodsOf({ from: '2026-11-01', to: '2026-11-02' }, 'hour', 'America/New_York');
    expect(autumn).toHaveLength(24);
    expect(new Set(autumn).size).toBe(24);
  });

  it('of months begin with the month of the first day', () => {
    expect(periodsOf({ from: '2026-01-15', to: '2026-03-02' }, 'month', 'UTC')).toEqual([
      '2026-01',
      '2026-02',
      '2026-03',
    ]);
  });

  it('are bounded', () => {
    expect(periodsOf({ from: '1900-01-01', to: '2100-01-01' }, 'hour', 'UTC', 50)).toHaveLength(50);
  });
});

describe('instants', () => {
  it('are shown in the enterprise’s zone', () => {
    expect(dateTimeText('2026-11-30T17:30:05Z', 'Asia/Kolkata')).toBe('2026-11-30 23:00:05');
    expect(shortInstantText('2026-11-30T17:30:05Z', 'Asia/Shanghai', at)).toBe('01:30:05');
    expect(shortInstantText('2026-11-29T01:30:05Z', 'Asia/Shanghai', at)).toBe('2026-11-29 09:30');
  });

  it('are told relative to now, never early', () => {
    expect(relativeText(new Date(at + 119_000).toISOString(), at, 'en')).toBe('in 1 min.');
    expect(relativeText(new Date(at - 3 * 86_400_000).toISOString(), at, 'en')).toBe('3 days ago');
    expect(relativeText(new Date(at + 7_200_000).toISOString(), at, 'zh-CN')).toBe('2小时后');
  });
});
