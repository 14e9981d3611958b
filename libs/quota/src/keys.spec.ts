import fc from 'fast-check';
import { expect, it } from 'vitest';
import { safeId, ShardKeys } from './keys.js';

it('lets no id change the hash slot of a key or run into another key', () => {
  const keys = new ShardKeys('weir', 3);
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (id) => {
      expect(safeId(id)).toMatch(/^[\w%-]+$/);
      expect(keys.scope(id).startsWith('weir:{s03}:scope:')).toBe(true);
      expect(keys.scope(id).match(/[{}]/g)).toEqual(['{', '}']);
    }),
  );
});

it('gives different ids different keys', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (one, other) => {
      expect(safeId(one) === safeId(other)).toBe(one === other);
    }),
  );
});
