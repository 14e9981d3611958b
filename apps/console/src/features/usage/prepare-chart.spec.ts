import { describe, expect, it } from 'vitest';
import type { UsageRow } from '../../api/types.js';
import { axisText, fittingGranularity, prepareChart, shareOf } from './prepare-chart.js';

const row = (
  group: string | null,
  period: string | null,
  cost: string,
  tokens = '0',
): UsageRow => ({
  groupId: group,
  groupName: group,
  deleted: group === 'gone',
  period,
  requests: '1',
  inputTokens: tokens,
  cachedInputTokens: '0',
  outputTokens: '0',
  tokens,
  cost,
});
const days = ['2026-11-01', '2026-11-02', '2026-11-03'];

describe('a prepared chart', () => {
  it('orders groups by their sum and shows every period, empty or not', () => {
    const chart = prepareChart(
      [row('a', '2026-11-01', '1'), row('b', '2026-11-01', '2'), row('a', '2026-11-03', '4')],
      'cost',
      'day',
      days,
    );
    expect(chart.series.map(({ name, total }) => [name, total])).toEqual([
      ['a', '5'],
      ['b', '2'],
    ]);
    expect(chart.points.map(({ period, total }) => [period, total])).toEqual([
      ['2026-11-01', '3'],
      ['2026-11-02', '0'],
      ['2026-11-03', '4'],
    ]);
    expect(chart.points[1]?.values).toEqual({ s0: 0, s1: 0 });
  });

  it('sums exactly, where doubles would not', () => {
    const chart = prepareChart(
      [row('a', '2026-11-01', '0.1'), row('b', '2026-11-01', '0.2')],
      'cost',
      'day',
      days,
    );
    expect(chart.points[0]?.total).toBe('0.3');
    const large = prepareChart(
      [row('a', '2026-11-01', '0', '9007199254740993'), row('a', '2026-11-02', '0', '1')],
      'tokens',
      'day',
      days,
    );
    expect(large.series[0]?.total).toBe('9007199254740994');
  });

  it('puts what is beyond the top into Other, whose sum completes the whole', () => {
    const rows = Array.from({ length: 6 }, (_, index) =>
      row(`g${index}`, '2026-11-01', String(10 - index)),
    );
    const chart = prepareChart(rows, 'cost', 'day', days, 3);
    expect(chart.series.map(({ key, groups, total }) => [key, groups, total])).toEqual([
      ['s0', 1, '10'],
      ['s1', 1, '9'],
      ['s2', 1, '8'],
      ['other', 3, '18'],
    ]);
    expect(chart.points[0]?.exact['other']).toBe('18');
    expect(chart.points[0]?.total).toBe('45');
  });

  it('does not hide one single group behind Other', () => {
    const rows = ['a', 'b', 'c', 'd'].map((name) => row(name, '2026-11-01', '1'));
    const chart = prepareChart(rows, 'cost', 'day', days, 3);
    expect(chart.series.some(({ isOther }) => isOther)).toBe(false);
    expect(chart.series).toHaveLength(4);
  });

  it('keeps its order between reads when sums are equal', () => {
    const there = prepareChart(
      [row('b', days[0] ?? '', '1'), row('a', days[0] ?? '', '1')],
      'cost',
      'day',
      days,
    );
    const back = prepareChart(
      [row('a', days[0] ?? '', '1'), row('b', days[0] ?? '', '1')],
      'cost',
      'day',
      days,
    );
    expect(there.series.map(({ name }) => name)).toEqual(['a', 'b']);
    expect(back.series).toEqual(there.series);
  });

  it('takes a month’s rows however the server writes their start', () => {
    const chart = prepareChart(
      [row('a', '2026-11-01', '1'), row('a', '2026-12', '2')],
      'cost',
      'month',
      ['2026-11', '2026-12'],
    );
    expect(chart.points.map(({ total }) => total)).toEqual(['1', '2']);
  });

  it('becomes empty and full again', () => {
    expect(prepareChart([], 'cost', 'day', days)).toMatchObject({ empty: true, series: [] });
    expect(prepareChart([row('a', '2026-11-01', '0')], 'cost', 'day', days).empty).toBe(true);
    expect(prepareChart([row('a', '2026-11-01', '0.000001')], 'cost', 'day', days).empty).toBe(
      false,
    );
  });

  it('keeps the mark of deleted groups', () => {
    expect(
      prepareChart([row('gone', '2026-11-01', '1')], 'cost', 'day', days).series[0]?.deleted,
    ).toBe(true);
  });
});

it('a share is of the server’s total and 0 without one', () => {
  const totals = { ...row(null, null, '200'), cost: '200' };
  expect(shareOf(row('a', null, '50'), totals, 'cost')).toBe(2_500);
  expect(shareOf(row('a', null, '50'), { ...totals, cost: '0' }, 'cost')).toBe(0);
});

it('a step fits its range', () => {
  expect([1, 2, 3, 31, 124, 125].map(fittingGranularity)).toEqual([
    'hour',
    'hour',
    'day',
    'day',
    'day',
    'month',
  ]);
});

it('ticks are told in three digits', () => {
  expect([0, 0.025, 650, 1_950, 2_600, 1_500_000, 1e9].map(axisText)).toEqual([
    '0',
    '0.025',
    '650',
    '1.95k',
    '2.6k',
    '1.5M',
    '1B',
  ]);
});
