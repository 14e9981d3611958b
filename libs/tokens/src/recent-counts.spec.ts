import { expect, it } from 'vitest';
import { RecentCounts } from './recent-counts.js';

it('never holds more than its bound', () => {
  const cache = new RecentCounts(10);
  for (let i = 0; i < 1_000; i++) {
    cache.set(`piece ${i}`, i);
    expect(cache.size).toBeLessThanOrEqual(10);
  }
});

it('keeps what is asked for again and drops what is not', () => {
  const cache = new RecentCounts(10);
  cache.set('kept', 1);
  cache.set('dropped', 2);
  for (let i = 0; i < 100; i++) {
    cache.set(`filler ${i}`, i);
    expect(cache.get('kept')).toBe(1);
  }
  expect(cache.get('dropped')).toBeUndefined();
});
