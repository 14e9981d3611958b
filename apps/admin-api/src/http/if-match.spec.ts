import { WeirError } from '@weir/domain';
import { describe, expect, it } from 'vitest';
import { ifMatchVersion, requireVersion } from './if-match.js';

function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof WeirError) return error.code;
    throw error;
  }
  return 'none';
}

describe('If-Match', () => {
  it.each([
    ['"7"', 7],
    ['W/"7"', 7],
    ['7', 7],
    [' "12" ', 12],
  ])('%s is version %i', (header, version) => {
    expect(ifMatchVersion(header)).toBe(version);
  });

  it.each([undefined, '', '  '])('%j is missing', (header) => {
    expect(codeOf(() => ifMatchVersion(header))).toBe('version_required');
  });

  it.each(['*', '"0"', '"-1"', '"1.5"', '"1", "2"', '"99999999999"', '"7', 'x'])(
    '%j is no version',
    (header) => {
      expect(codeOf(() => ifMatchVersion(header))).toBe('invalid_request');
    },
  );

  it('gives the stored row to whoever saw an older one', () => {
    const current = { version: 3, name: 'Theirs' };
    expect(codeOf(() => requireVersion(3, current))).toBe('none');
    expect(codeOf(() => requireVersion(2, current))).toBe('version_conflict');
    try {
      requireVersion(2, current);
    } catch (error) {
      expect((error as WeirError).details).toEqual({ current });
    }
  });
});
