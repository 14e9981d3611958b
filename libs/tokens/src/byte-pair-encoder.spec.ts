import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { Tiktoken } from 'js-tiktoken/lite';
import cl100kSource from 'js-tiktoken/ranks/cl100k_base';
import o200kSource from 'js-tiktoken/ranks/o200k_base';
import { describe, expect, it } from 'vitest';
import { BytePairEncoder } from './byte-pair-encoder.js';
import { loadEncoding } from './encodings.js';
import { threadTime_ms } from './thread-time.spec-helper.js';

/** What js-tiktoken itself counts with special-token text taken as ordinary text. */
const references = {
  o200k_base: new Tiktoken(o200kSource),
  cl100k_base: new Tiktoken(cl100kSource),
};
const encodings = ['o200k_base', 'cl100k_base'] as const;
type Name = (typeof encodings)[number];

function reference(name: Name, text: string): number {
  return references[name].encode(text, [], []).length;
}

const seed = Date.now() % 2 ** 31;

/** Runs of one thing: the pieces that the heap merges. js-tiktoken needs them short. */
const run = fc
  .tuple(
    fc.constantFrom(
      'a',
      'A',
      ' ',
      '\n',
      '\t',
      '7',
      '好',
      'ก',
      '😀',
      '=',
      '\u0301',
      'ʰ',
      'ß',
      '\r\n',
    ),
    fc.integer({ min: 1, max: 120 }),
  )
  .map(([unit, times]) => unit.repeat(times));
const chineseRun = fc
  .array(fc.integer({ min: 0x4e00, max: 0x9fff }), { minLength: 1, maxLength: 60 })
  .map((codes) => String.fromCharCode(...codes));
const letterRun = fc.stringMatching(/^[a-zA-Z]{1,150}$/);
const fragment = fc.constantFrom(
  '<|endoftext|>',
  '<|endofprompt|>',
  '<|fim_prefix|>',
  '\ud800',
  '\udc00x',
  '\ufeff',
  '\u0000',
  "'LL don't I'Ve",
  ' \u00a0\u3000 ',
  'https://weir.example/path?a=1&b=2',
  '{"key": [1, 2.5e-3, null]}',
  'สวัสดีครับ',
  'Straße ÀÉÎ ǅ',
  '👩‍👩‍👧‍👦🇩🇪',
);
const anyText = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary', maxLength: 40 }),
      fc.string({ unit: 'grapheme', maxLength: 40 }),
      fc.string({ unit: 'grapheme-ascii', maxLength: 80 }),
      run,
      chineseRun,
      letterRun,
      fragment,
    ),
    { maxLength: 5 },
  )
  .map((parts) => parts.join(''));

describe.each(encodings)('counting with %s', (name) => {
  it(`agrees with js-tiktoken on any text (seed ${seed})`, async () => {
    const { encoder } = await loadEncoding(name);
    fc.assert(
      fc.property(anyText, (text) => encoder.count(text) === reference(name, text)),
      { seed, numRuns: 1_500 },
    );
  });

  it(`agrees with js-tiktoken on single long pieces, where the heap merges (seed ${seed})`, async () => {
    const { table } = await loadEncoding(name);
    // A fresh encoder: no count comes from the cache.
    const encoder = new BytePairEncoder(table);
    const longPiece = fc.oneof(
      fc.stringMatching(/^[a-z]{65,220}$/),
      fc.stringMatching(/^[!-/]{65,220}$/),
      fc
        .array(fc.constantFrom('ab', 'aab', 'x', 'the', 'ing', 'q'), {
          minLength: 40,
          maxLength: 80,
        })
        .map((parts) => parts.join('')),
      fc
        .array(fc.integer({ min: 0x4e00, max: 0x9fff }), { minLength: 25, maxLength: 70 })
        .map((codes) => String.fromCharCode(...codes)),
    );
    fc.assert(
      fc.property(longPiece, (text) => encoder.count(text) === reference(name, text)),
      { seed, numRuns: 400 },
    );
  });

  it('agrees around the size where the linear merge hands over to the heap', async () => {
    const { table } = await loadEncoding(name);
    for (let length = 60; length <= 70; length++) {
      for (const unit of ['a', 'ab', 'xyz', '=', 'é']) {
        const text = unit.repeat(length).slice(0, length);
        expect(new BytePairEncoder(table).count(text), `${length} of ${unit}`).toBe(
          reference(name, text),
        );
      }
    }
  });

  it('agrees on every token of the vocabulary that is text by itself', async () => {
    const { table } = await loadEncoding(name);
    const encoder = new BytePairEncoder(table);
    const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    let compared = 0;
    const wrong: string[] = [];
    for (let rank = 0; rank + 1 < table.offsets.length; rank++) {
      const bytes = Buffer.from(table.pool.subarray(table.offsets[rank], table.offsets[rank + 1]));
      if (!isUtf8(bytes)) continue;
      const text = utf8.decode(bytes);
      compared++;
      if (encoder.count(text) !== reference(name, text)) wrong.push(text);
    }
    expect(wrong).toEqual([]);
    expect(compared).toBeGreaterThan(99_000);
  });

  it('counts the same with a warm cache as with a cold one', async () => {
    const { table, encoder } = await loadEncoding(name);
    const text = 'The same words, the same words; ünïcode wörds — 数据数据。'.repeat(30);
    const cold = new BytePairEncoder(table).count(text);
    expect([encoder.count(text), encoder.count(text), cold]).toEqual(
      Array(3).fill(reference(name, text)),
    );
  });

  it.each(['<|endoftext|>', 'a<|endofprompt|>b', '\ud83d', '\udc00\ud800', '\ufeffhello', ''])(
    'takes %j as ordinary text and does not throw',
    async (text) => {
      const { encoder } = await loadEncoding(name);
      expect(encoder.count(text)).toBe(reference(name, text));
    },
  );
});

describe('sizes that js-tiktoken cannot finish', () => {
  it('splits additively: a long run of Chinese counts as its sentences do', async () => {
    const { encoder } = await loadEncoding('o200k_base');
    const sentence = '数据平台按部门计费。';
    // The full stop opens the next piece, so whole sentences count alone from the second on.
    const one = encoder.count(sentence);
    const two = encoder.count(sentence.repeat(2));
    expect(encoder.count(sentence.repeat(20_000))).toBe(one + (two - one) * 19_999);
  });

  it('counts 100,000 of one letter as runs of the longest token of it', async () => {
    const { encoder } = await loadEncoding('o200k_base');
    expect(reference('o200k_base', 'a'.repeat(160))).toBe(20);
    expect(encoder.count('a'.repeat(100_000))).toBe(12_500);
  });

  it('takes time in proportion: 8 times the text costs less than 24 times as much', async () => {
    const { table } = await loadEncoding('o200k_base');
    const encoder = new BytePairEncoder(table);
    let letters = '';
    for (let i = 0; letters.length < 400_000; i++)
      letters += ((i * 2_654_435_761) % 2 ** 32).toString(36).replace(/\d/g, 'q');
    const time = (chars: number) => {
      const text = letters.slice(0, chars);
      const samples = [0, 1, 2].map(() => {
        const start = threadTime_ms();
        encoder.count(text);
        return threadTime_ms() - start;
      });
      return Math.min(...samples);
    };
    time(50_000);
    expect(time(400_000) / time(50_000)).toBeLessThan(24);
  });
});
