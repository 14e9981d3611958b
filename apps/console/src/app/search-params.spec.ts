import { expect, it } from 'vitest';
import { parseSearch, stringifySearch } from './search-params.js';

it('an address keeps every value as the text that it was, and leaves out what is not set', () => {
  const search = stringifySearch({
    id: '0012345678901234567890',
    empty: '',
    none: undefined,
    q: 'a&b=c 中',
  });
  expect(parseSearch(search)).toEqual({ id: '0012345678901234567890', q: 'a&b=c 中' });
  expect(stringifySearch({})).toBe('');
});
