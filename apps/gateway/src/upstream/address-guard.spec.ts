import { describe, expect, it } from 'vitest';
import { requireAllowedAddress, requireAllowedHost } from './address-guard.js';

describe('the address guard', () => {
  it.each(['8.8.8.8', '2606:4700:4700::1111'])('lets the public address %s pass', (address) => {
    expect(() => requireAllowedAddress('host', address, false)).not.toThrow();
  });

  it.each([
    '127.0.0.1',
    '10.1.2.3',
    '192.168.1.1',
    '100.64.0.1',
    '::1',
    'fd00::1',
    '::ffff:10.0.0.1',
    '64:ff9b::a00:1',
    '0.0.0.0',
    '224.0.0.1',
  ])('refuses %s unless private addresses are allowed', (address) => {
    expect(() => requireAllowedAddress('host', address, false)).toThrow(/may not have/);
  });

  it.each(['127.0.0.1', '10.1.2.3', '::1', 'fd00::1', '::ffff:192.168.0.1'])(
    'allows %s where the operator allows private addresses',
    (address) => {
      expect(() => requireAllowedAddress('host', address, true)).not.toThrow();
    },
  );

  it.each(['169.254.169.254', 'fe80::1', '0.0.0.0', '::ffff:169.254.169.254'])(
    'never allows %s: metadata services live there',
    (address) => {
      expect(() => requireAllowedAddress('host', address, true)).toThrow();
    },
  );

  it.each([
    'http://0x7f000001/v1',
    'http://2130706433/v1',
    'http://[::ffff:7f00:1]/v1',
    'http://127.1/v1',
  ])('sees through the notation of %s', (url) => {
    expect(() => requireAllowedHost(new URL(url), false)).toThrow();
  });
});
