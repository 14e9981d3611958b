import fc from 'fast-check';
import { expect, it } from 'vitest';
import { packList, unpackList } from './msgpack.js';

it('reads back any list of texts and numbers that it wrote', () => {
  const item = fc.oneof(fc.string({ unit: 'grapheme' }), fc.integer(), fc.double({ noNaN: true }));
  fc.assert(
    fc.property(fc.array(item), (items) => {
      expect(unpackList(packList(items))).toEqual(items);
    }),
  );
});

it('refuses what is not a list of texts and numbers', () => {
  expect(() => unpackList(Buffer.from([0x90]))).toThrow(RangeError);
  expect(() => unpackList(Buffer.from([0xdd, 0, 0, 0, 1, 0xc0]))).toThrow(RangeError);
});
