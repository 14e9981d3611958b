import { describe, expect, it } from 'vitest';
import { refusalTexts } from './refusal-text.js';

describe('the words for a wait', () => {
  const known = { position: 3, of: 7, about: 4, atMost: 20 };

  it('tell position and expected wait', () => {
    expect(refusalTexts.en.waiting(known)).toBe('waiting, position 3 of 7, about 4 s');
    expect(refusalTexts.zh.waiting(known)).toBe('正在排队，第 3 位，共 7 位，预计还需约 4 秒');
  });

  it('tell when it ends at the latest, where nobody knows when its turn comes', () => {
    const unknown = { ...known, about: null };
    expect(refusalTexts.en.waiting(unknown)).toBe(
      'waiting, position 3 of 7, for at most 20 s more',
    );
    expect(refusalTexts.zh.waiting(unknown)).toBe('正在排队，第 3 位，共 7 位，最多再等 20 秒');
  });
});
