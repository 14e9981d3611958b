import { describe, expect, it } from 'vitest';
import { hashPassword, makePassword, passwordFits } from './passwords.js';

describe('passwords', () => {
  it('are stored as argon2id, each with a salt of its own', async () => {
    const [first, second] = [await hashPassword('same'), await hashPassword('same')];
    expect(first).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(first).not.toBe(second);
    expect(await passwordFits(first, 'same')).toBe(true);
    expect(await passwordFits(second, 'same')).toBe(true);
    expect(await passwordFits(first, 'other')).toBe(false);
  });

  it('fit no account that has none, not even the decoy that is checked instead', async () => {
    expect(await passwordFits(null, 'no account has this password')).toBe(false);
  });

  it('that are made are long, random and easy to type', () => {
    const made = Array.from({ length: 200 }, makePassword);
    expect(new Set(made).size).toBe(200);
    for (const password of made)
      expect(password).toMatch(/^([a-hj-km-np-z2-9]{5}-){4}[a-hj-km-np-z2-9]{5}$/);
    // Every character of the alphabet comes up in 5,000 draws.
    expect(new Set(made.join('').replaceAll('-', '')).size).toBe(31);
  });
});
