import { describe, expect, it } from 'vitest';
import { mayCallFrom } from './ip-rules.js';

const allows = (address: string, rules: { allow?: string[]; deny?: string[] }) =>
  mayCallFrom({ allow: rules.allow ?? [], deny: rules.deny ?? [] }, address);

describe('mayCallFrom', () => {
  it('lets every address in where there are no rules', () => {
    expect(allows('203.0.113.7', {})).toBe(true);
    expect(allows('unknown', {})).toBe(true);
  });

  it('lets in what is allowed and nothing else', () => {
    const allow = ['10.0.0.0/8', '203.0.113.7', '2001:db8::/32'];
    expect(allows('10.255.0.1', { allow })).toBe(true);
    expect(allows('203.0.113.7', { allow })).toBe(true);
    expect(allows('2001:db8:1::5', { allow })).toBe(true);
    expect(allows('11.0.0.1', { allow })).toBe(false);
    expect(allows('203.0.113.8', { allow })).toBe(false);
    expect(allows('2001:db9::5', { allow })).toBe(false);
  });

  it('shuts out what is denied, also where it is allowed', () => {
    const rules = { allow: ['10.0.0.0/8'], deny: ['10.1.0.0/16'] };
    expect(allows('10.2.0.1', rules)).toBe(true);
    expect(allows('10.1.0.1', rules)).toBe(false);
    expect(allows('192.0.2.1', { deny: ['10.0.0.0/8'] })).toBe(true);
  });

  it('takes an IPv4-mapped address for the IPv4 address in it, in callers and in rules', () => {
    expect(allows('::ffff:10.0.0.1', { deny: ['10.0.0.0/8'] })).toBe(false);
    expect(allows('::ffff:a00:1', { allow: ['10.0.0.1'] })).toBe(true);
    expect(allows('10.0.0.1', { deny: ['::ffff:10.0.0.1'] })).toBe(false);
    expect(allows('10.9.0.1', { deny: ['::ffff:10.0.0.0/104'] })).toBe(false);
    expect(allows('11.0.0.1', { deny: ['::ffff:10.0.0.0/104'] })).toBe(true);
  });

  it('shuts out what is no address, once there are rules', () => {
    for (const address of ['', 'unknown', '10.1', '0x0a000001', '10.0.0.1:443']) {
      expect(allows(address, { allow: ['0.0.0.0/0', '::/0'] })).toBe(false);
      expect(allows(address, { deny: ['192.0.2.1'] })).toBe(false);
    }
  });
});
