import type { LimitMode } from '@weir/domain';
import { describe, expect, it } from 'vitest';
import { loosens } from './limits.controller.js';

const limit = (amount: bigint | null, mode: LimitMode = 'hard') => ({ amount, mode });

describe('a change of a limit', () => {
  it.each([
    ['a larger amount', limit(10n), limit(11n)],
    ['no amount', limit(10n), limit(null)],
    ['an amount instead of a block', limit(0n), limit(1n)],
    ['a soft limit instead of a hard one', limit(10n), limit(10n, 'soft')],
    ['a shadow limit, though lower', limit(10n, 'soft'), limit(1n, 'shadow')],
  ])('loosens it with %s', (_name, before, after) => {
    expect(loosens(before, after)).toBe(true);
  });

  it.each([
    ['the same', limit(10n), limit(10n)],
    ['less', limit(10n), limit(9n)],
    ['a block', limit(10n), limit(0n)],
    ['a first amount', limit(null), limit(1_000n)],
    ['a harder mode', limit(10n, 'shadow'), limit(10n, 'hard')],
  ])('does not loosen it with %s', (_name, before, after) => {
    expect(loosens(before, after)).toBe(false);
  });
});
