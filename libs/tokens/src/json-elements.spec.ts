import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasMoreElements, jsonChars } from './json-elements.js';

const seed = Date.now() % 2 ** 31;

/** The same count by the parsed value: containers, and the commas between their members. */
function elements(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const members = Object.values(value);
  return (
    1 + Math.max(0, members.length - 1) + members.reduce((sum, item) => sum + elements(item), 0)
  );
}

describe('the number of elements of a JSON text', () => {
  it(`is bounded exactly, whatever strings hold (seed ${seed})`, () => {
    const tricky = fc.constantFrom('a,b', '"', '\\', '\\\\"', '{[,', '', '\\"');
    const json = fc.jsonValue({
      stringUnit: fc.oneof(tricky, fc.string({ unit: 'binary' })),
    });
    const value = fc.oneof(
      json,
      fc.array(fc.oneof(tricky, fc.integer())),
      fc.dictionary(tricky, tricky),
    );
    fc.assert(
      fc.property(value, (parsed) => {
        const bytes = Buffer.from(JSON.stringify(parsed));
        const count = elements(parsed);
        return !hasMoreElements(bytes, count) && (count === 0 || hasMoreElements(bytes, count - 1));
      }),
      { seed, numRuns: 1_000 },
    );
  });

  it('ends on text that is no JSON', () => {
    for (const text of ['"', '"\\', '{"a', '\\"', '']) {
      expect(hasMoreElements(Buffer.from(text), 5)).toBe(false);
    }
  });
});

it(`jsonChars is never less than a third of the JSON's bytes, unless escaped (seed ${seed})`, () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value);
      return text.includes('\\') || jsonChars(value) * 3 >= Buffer.byteLength(text);
    }),
    { seed },
  );
});

it('jsonChars measures nesting that JSON.stringify cannot write', () => {
  const deep: unknown = JSON.parse('['.repeat(200_000) + ']'.repeat(200_000));
  expect(() => JSON.stringify(deep)).toThrow(RangeError);
  expect(jsonChars(deep)).toBe(400_000);
});
