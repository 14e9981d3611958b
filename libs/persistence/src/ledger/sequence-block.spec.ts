import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  advanceWatermark,
  blockOf,
  countMarked,
  emptyBlock,
  isMarked,
  mark,
  missingRanges,
} from './sequence-block.js';

function blocksOf(seqs: Iterable<number>): Map<number, Uint8Array> {
  const blocks = new Map<number, Uint8Array>();
  for (const seq of seqs) {
    const bits = blocks.get(blockOf(seq)) ?? emptyBlock();
    blocks.set(blockOf(seq), bits);
    mark(bits, seq);
  }
  return blocks;
}

describe('blocks of sequence numbers', () => {
  it('begin at 1 and hold a thousand each', () => {
    expect([1, 1_000, 1_001, 2_000, 2_001].map(blockOf)).toEqual([0, 0, 1, 1, 2]);
  });

  it('tell a first arrival from a repeated one', () => {
    const block = emptyBlock();
    expect(mark(block, 1_000)).toBe(true);
    expect(mark(block, 1_000)).toBe(false);
    expect(isMarked(block, 1_000)).toBe(true);
    expect(isMarked(block, 999)).toBe(false);
    expect(countMarked(block)).toBe(1);
  });

  it('give the same watermark and holes as a plain set, whatever arrives in whatever order', () => {
    const seqs = fc.uniqueArray(fc.integer({ min: 1, max: 2_500 }), {
      minLength: 1,
      maxLength: 400,
    });
    fc.assert(
      fc.property(seqs, (arrived) => {
        const set = new Set(arrived);
        const highest = Math.max(...arrived);
        let watermark = 0;
        while (set.has(watermark + 1)) watermark += 1;
        const blocks = blocksOf(arrived);
        const block = (index: number) => blocks.get(index);
        expect(advanceWatermark(0, highest, block)).toBe(watermark);
        const missing = missingRanges(watermark, highest, block, 10_000).flatMap(({ from, to }) =>
          Array.from({ length: to - from + 1 }, (_, index) => from + index),
        );
        const expected = Array.from({ length: highest }, (_, index) => index + 1).filter(
          (seq) => !set.has(seq),
        );
        expect(missing).toEqual(expected);
      }),
    );
  });

  it('name at most as many ranges as asked for', () => {
    const blocks = blocksOf([2, 4, 6, 8, 10]);
    expect(missingRanges(0, 10, (index) => blocks.get(index), 2)).toEqual([
      { from: 1, to: 1 },
      { from: 3, to: 3 },
    ]);
  });
});
