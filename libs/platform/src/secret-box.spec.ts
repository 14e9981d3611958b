import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { SecretBox, SecretBoxError } from './secret-box.js';

const newKey = () => randomBytes(32).toString('base64');

function codeOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (error instanceof SecretBoxError) return error.code;
    throw error;
  }
  return 'opened';
}

/** A key whose id byte equals, or differs from, that of the given sealed text. */
function otherKey(sealed: string, sameId: boolean): string {
  for (let tries = 0; tries < 100_000; tries += 1) {
    const key = newKey();
    if (SecretBox.fromSetting(key).isStale(sealed) !== sameId) return key;
  }
  throw new Error('no such key found');
}

describe('SecretBox', () => {
  it('opens what it sealed, whatever the text', () => {
    const box = SecretBox.fromSetting(newKey());
    for (const text of ['', 'sk-abc', '密钥 🗝️', 'x'.repeat(10_000)]) {
      const sealed = box.seal(text, 'row-1');
      expect(sealed).toMatch(/^v1\.[\w-]+\.[\w-]+\.[\w-]*$/);
      expect(box.open(sealed, 'row-1')).toBe(text);
    }
  });

  it('seals the same text differently each time', () => {
    const box = SecretBox.fromSetting(newKey());
    expect(box.seal('sk-abc')).not.toBe(box.seal('sk-abc'));
  });

  it('tells a wrong key apart from a broken text', () => {
    const box = SecretBox.fromSetting(newKey());
    const sealed = box.seal('sk-abc');
    expect(codeOf(() => SecretBox.fromSetting(otherKey(sealed, false)).open(sealed))).toBe(
      'unknown_key',
    );
    expect(codeOf(() => SecretBox.fromSetting(otherKey(sealed, true)).open(sealed))).toBe(
      'not_authentic',
    );
    for (const text of ['', 'sk-abc', 'v2.a.b.c', sealed.slice(3), `${sealed}!`, 'v1.aa.bb.cc']) {
      expect(codeOf(() => box.open(text))).toBe('malformed');
    }
  });

  it('refuses a text whose bytes were altered or that was moved to another place', () => {
    const box = SecretBox.fromSetting(newKey());
    const sealed = box.seal('sk-abcdef', 'row-1');
    expect(codeOf(() => box.open(sealed, 'row-2'))).toBe('not_authentic');
    const [version, head, tag, cipherText = ''] = sealed.split('.');
    const first = cipherText.startsWith('A') ? 'B' : 'A';
    const altered = [version, head, tag, first + cipherText.slice(1)].join('.');
    expect(codeOf(() => box.open(altered, 'row-1'))).toBe('not_authentic');
  });

  it('opens with every configured key and seals with the first, so that keys can be rotated', () => {
    const old = newKey();
    const sealed = SecretBox.fromSetting(old).seal('sk-abc');
    const next = otherKey(sealed, false);
    const rotated = SecretBox.fromSetting(`${next}, ${old}`);
    expect(rotated.open(sealed)).toBe('sk-abc');
    expect(rotated.isStale(sealed)).toBe(true);
    const resealed = rotated.seal('sk-abc');
    expect(rotated.isStale(resealed)).toBe(false);
    expect(SecretBox.fromSetting(next).open(resealed)).toBe('sk-abc');
  });

  it('opens with the right one of two keys that share an id byte', () => {
    const old = newKey();
    const sealed = SecretBox.fromSetting(old).seal('sk-abc');
    expect(SecretBox.fromSetting(`${otherKey(sealed, true)},${old}`).open(sealed)).toBe('sk-abc');
  });

  it('says which key of the setting is wrong without showing it', () => {
    const short = randomBytes(16).toString('base64');
    expect(() => SecretBox.fromSetting(`${newKey()},${short}`)).toThrow(/key 2 must be 32 bytes/);
    expect(() => SecretBox.fromSetting(short)).not.toThrow(new RegExp(short.slice(0, 8)));
    expect(codeOf(() => SecretBox.fromSetting(''))).toBe('invalid_key');
    expect(codeOf(() => SecretBox.fromSetting(newKey()).seal('x'.repeat(65_537)))).toBe('too_long');
  });
});
