import { isId } from '@weir/domain';
import { describe, expect, it } from 'vitest';
import { requestIdFrom } from './request-id.js';

describe('requestIdFrom', () => {
  it('keeps an id that is harmless in logs and headers', () => {
    for (const id of ['abc-1.2_3', 'x'.repeat(128)]) expect(requestIdFrom(id)).toBe(id);
  });

  it('replaces a missing, long, repeated or hostile id by a new UUIDv7', () => {
    for (const id of [
      undefined,
      '',
      'x'.repeat(129),
      'a b',
      'a\nb',
      '{s07}',
      'é',
      ['a', 'b'],
      'abc\n',
    ]) {
      expect(isId(requestIdFrom(id))).toBe(true);
    }
  });
});
