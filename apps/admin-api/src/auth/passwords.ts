import { randomBytes } from 'node:crypto';
import { hash, verify, type Options } from '@node-rs/argon2';

/** OWASP's first choice for argon2id (the library's default algorithm): 19 MiB, two passes, one lane. */
const cost: Options = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

export async function hashPassword(password: string): Promise<string> {
  return hash(password, cost);
}

let decoy: Promise<string> | undefined;

/**
 * Whether the password fits the stored hash. Without a hash (unknown e-mail, no login) it takes as long as with one, so
 * that the time of the answer does not tell which e-mails exist.
 */
export async function passwordFits(stored: string | null, password: string): Promise<boolean> {
  decoy ??= hashPassword('no account has this password');
  const fits = await verify(stored ?? (await decoy), password);
  return stored !== null && fits;
}

/** Five groups of five letters and digits that cannot be mistaken for one another: 25 × 4.9 bits. */
export function makePassword(): string {
  const letters = 'abcdefghjkmnpqrstuvwxyz23456789';
  // Bytes beyond the last whole multiple are skipped, or the first letters would be likelier.
  const fair = 256 - (256 % letters.length);
  let password = '';
  while (password.length < 25) {
    for (const byte of randomBytes(64)) {
      if (byte < fair && password.length < 25) password += letters[byte % letters.length] ?? '';
    }
  }
  return (password.match(/.{5}/g) ?? []).join('-');
}
