import { createTokenCounter } from '@weir/tokens';
import { describe, expect, it } from 'vitest';
import { proseFor, seedOf } from './prose.js';

describe('prose', () => {
  it('answers in the language of the prompt', () => {
    expect(proseFor('How are you?').text(0, 0, 20)).toMatch(/^[\x20-\x7e]+$/);
    expect(proseFor('请介绍 quota').text(0, 0, 20)).toMatch(/^[\u3000-\u9fff，]+$/);
  });

  it('gives every token of the text exactly once, wherever it is cut', () => {
    for (const prompt of ['hello', '你好']) {
      const prose = proseFor(prompt);
      const start = prose.startFor(seedOf(prompt));
      const whole = prose.text(start, 0, 300);
      const tokens = Array.from({ length: 300 }, (_, at) => prose.text(start, at, at + 1));
      expect(tokens.join('')).toBe(whole);
      expect(tokens.every((token) => token.length > 0)).toBe(true);
      expect(prose.text(start, 0, 100) + prose.text(start, 100, 300)).toBe(whole);
    }
  });

  it('is cut into the tokens of a real tokenizer, wherever an answer begins and ends', async () => {
    const counter = createTokenCounter({ threads: 0 });
    for (const prompt of ['hello', '你好']) {
      const prose = proseFor(prompt);
      for (let seed = 0; seed < 10; seed += 1) {
        const start = prose.startFor(seed);
        for (let length = 1; length <= 200; length += 1) {
          const text = prose.text(start, 0, length);
          const { tokens } = await counter.countText('gpt-4o', text);
          expect(tokens, text).toBe(length);
        }
      }
    }
    await counter.close();
  });

  it('ends its own choice of length with a sentence, within 16 to 64 tokens', () => {
    for (let seed = 0; seed < 300; seed += 1) {
      for (const prompt of ['hello', '你好']) {
        const prose = proseFor(prompt);
        const start = prose.startFor(seed);
        const count = prose.wholeSentences(start, 16 + (seed % 30));
        expect(prose.text(start, 0, count)).toMatch(/[.。]$/);
        expect(count).toBeGreaterThanOrEqual(16);
        expect(count).toBeLessThanOrEqual(64);
      }
    }
  });

  it('tells prompts apart', () => {
    const seeds = new Set(Array.from({ length: 500 }, (_, index) => seedOf(`prompt ${index}`)));
    expect(seeds.size).toBe(500);
  });
});
