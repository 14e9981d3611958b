import { describe, expect, it } from 'vitest';
import { prepareDiff } from './prepare-diff.js';

describe('the difference of two rows', () => {
  it('lists changed, added and removed fields by path', () => {
    expect(
      prepareDiff(
        { name: 'a', limits: { cost: '5', mode: 'hard' }, gone: 1 },
        { name: 'a', limits: { cost: null, mode: 'hard' }, new: true },
      ),
    ).toEqual([
      { field: 'limits.cost', before: '5', after: 'null' },
      { field: 'gone', before: '1', after: undefined },
      { field: 'new', before: undefined, after: 'true' },
    ]);
  });

  it('tells null from 0 and the text from the number', () => {
    expect(prepareDiff({ amount: '0' }, { amount: null })).toHaveLength(1);
    expect(prepareDiff({ a: [] }, { a: [] })).toEqual([]);
  });

  it('of a creation has only what came', () => {
    expect(prepareDiff(null, { name: 'x' })).toEqual([
      { field: 'name', before: undefined, after: 'x' },
    ]);
  });
});
