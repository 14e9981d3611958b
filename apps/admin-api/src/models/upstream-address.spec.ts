import { describe, expect, it } from 'vitest';
import { upstreamAddressFault } from './upstream-address.js';

const names: Record<string, string[]> = {
  'api.example.com': ['8.8.8.8'],
  'inside.example.com': ['8.8.8.8', '10.0.0.5'],
  'v6.example.com': ['fd00::1'],
};
const resolve = async (hostname: string): Promise<string[]> => {
  const found = names[hostname];
  if (found === undefined) throw new Error('unknown host');
  return found;
};
const fault = (url: string, allowPrivate = false) =>
  upstreamAddressFault(url, { allowPrivate, resolve });

describe('the address of a provider', () => {
  it.each([
    'https://api.example.com/v1',
    'https://8.8.8.8/v1',
    'https://[2606:4700:4700::1111]/v1',
    'https://not-known-yet.example.com/v1',
  ])('%s is taken', async (url) => {
    expect(await fault(url)).toBeNull();
  });

  it.each([
    'http://127.0.0.1/v1',
    'http://0.0.0.0/v1',
    'http://0x7f000001/v1',
    'http://10.0.0.1/v1',
    'http://172.16.0.1/v1',
    'http://100.64.0.1/v1',
    'http://169.254.169.254/v1',
    'http://224.0.0.1/v1',
    'http://[::]/v1',
    'http://[fe80::1]/v1',
    'http://[::ffff:127.0.0.1]/v1',
    'http://localhost./v1',
    'http://db.internal/v1',
    'http://printer.local/v1',
    'http://inside.example.com/v1',
    'http://v6.example.com/v1',
  ])('%s is private, unless private ones are allowed', async (url) => {
    expect(await fault(url)).toContain('private address');
    expect(await fault(url, true)).toBeNull();
  });

  it.each(['https://me:pw@api.example.com/v1', 'https://api.example.com/v1?key=1'])(
    '%s may carry no secret of its own, allowed or not',
    async (url) => {
      expect(await fault(url)).not.toBeNull();
      expect(await fault(url, true)).not.toBeNull();
    },
  );
});
