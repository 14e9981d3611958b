import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

export type SecretBoxErrorCode =
  'invalid_key' | 'malformed' | 'unknown_key' | 'not_authentic' | 'too_long';

/** Why a sealed text cannot be opened (or a box not be made). Never carries the plain text or a key. */
export class SecretBoxError extends Error {
  constructor(
    readonly code: SecretBoxErrorCode,
    message: string,
  ) {
    super(message);
    this.name = 'SecretBoxError';
  }
}

const ivBytes = 12;
const tagBytes = 16;
const plainBytesMax = 64 * 1024;
const sealedCharactersMax = Math.ceil((plainBytesMax * 4) / 3) + 128;

type Key = { readonly id: number; readonly bytes: Buffer };

/**
 * Seals short secrets (upstream API keys, webhook secrets) for storage, with AES-256-GCM.
 *
 * Sealed form: `v1.<key id byte + iv>.<tag>.<cipher text>`, each part base64url. The key id is the first byte of the
 * key's SHA-256, so rotation needs no bookkeeping: put the new key first in WEIR_SECRET_KEY and the old one behind
 * a comma; new secrets are sealed with the first, all keys open.
 */
export class SecretBox {
  private readonly sealing: Key;

  private constructor(private readonly keys: readonly [Key, ...Key[]]) {
    this.sealing = keys[0];
  }

  /**
   * @param setting WEIR_SECRET_KEY: one or more keys of 32 bytes in base64, separated by commas.
   * @throws SecretBoxError `invalid_key`, saying which key of the list is wrong, without showing it.
   */
  static fromSetting(setting: string): SecretBox {
    const [first, ...others] = setting.split(',').map((text, index) => readKey(text.trim(), index));
    if (first === undefined) throw new SecretBoxError('invalid_key', 'there is no key');
    return new SecretBox([first, ...others]);
  }

  /**
   * @param context what the secret belongs to, such as a row's id. It must be given again to open, so that a sealed
   * text copied to another row does not open there.
   */
  seal(plain: string, context = ''): string {
    const bytes = Buffer.from(plain, 'utf8');
    if (bytes.length > plainBytesMax) {
      throw new SecretBoxError('too_long', `a secret may have at most ${plainBytesMax} bytes`);
    }
    const iv = randomBytes(ivBytes);
    const cipher = createCipheriv('aes-256-gcm', this.sealing.bytes, iv);
    cipher.setAAD(associatedData(this.sealing.id, context));
    const cipherText = Buffer.concat([cipher.update(bytes), cipher.final()]);
    const head = Buffer.concat([Buffer.of(this.sealing.id), iv]);
    return [
      'v1',
      ...[head, cipher.getAuthTag(), cipherText].map((part) => part.toString('base64url')),
    ].join('.');
  }

  /**
   * @throws SecretBoxError `malformed` (not a sealed text), `unknown_key` (sealed with a key that is not configured),
   * `not_authentic` (altered, other context, or another key with the same id).
   */
  open(sealed: string, context = ''): string {
    const { keyId, iv, tag, cipherText } = readSealed(sealed);
    const candidates = this.keys.filter((key) => key.id === keyId);
    if (candidates.length === 0) {
      throw new SecretBoxError(
        'unknown_key',
        'the secret was sealed with a key that is not configured',
      );
    }
    for (const key of candidates) {
      const decipher = createDecipheriv('aes-256-gcm', key.bytes, iv, { authTagLength: tagBytes });
      decipher.setAAD(associatedData(key.id, context));
      decipher.setAuthTag(tag);
      const plain = decipher.update(cipherText);
      try {
        return Buffer.concat([plain, decipher.final()]).toString('utf8');
      } catch {
        // GCM says only "does not authenticate"; another key with the same id may still fit.
      }
    }
    throw new SecretBoxError(
      'not_authentic',
      'the secret was altered or belongs to another key or place',
    );
  }

  /** Whether a sealed text should be sealed again because the first key is another one by now. */
  isStale(sealed: string): boolean {
    return readSealed(sealed).keyId !== this.sealing.id;
  }
}

function readKey(text: string, index: number): Key {
  const bytes = Buffer.from(text, 'base64');
  const isBase64 = /^[A-Za-z0-9+/_-]+={0,2}$/.test(text);
  if (!isBase64 || bytes.length !== 32) {
    throw new SecretBoxError(
      'invalid_key',
      `key ${index + 1} must be 32 bytes in base64 (openssl rand -base64 32)`,
    );
  }
  return { id: createHash('sha256').update(bytes).digest().readUInt8(0), bytes };
}

function associatedData(keyId: number, context: string): Buffer {
  return Buffer.concat([Buffer.from('weir.v1'), Buffer.of(keyId), Buffer.from(context, 'utf8')]);
}

function readSealed(sealed: string): {
  keyId: number;
  iv: Buffer;
  tag: Buffer;
  cipherText: Buffer;
} {
  const wellFormed = /^v1\.([\w-]+)\.([\w-]+)\.([\w-]*)$/;
  const match = sealed.length <= sealedCharactersMax ? wellFormed.exec(sealed) : null;
  const [head, tag, cipherText] = (match ?? [])
    .slice(1)
    .map((part) => Buffer.from(part, 'base64url'));
  if (!head || !tag || !cipherText || head.length !== 1 + ivBytes || tag.length !== tagBytes) {
    throw new SecretBoxError('malformed', 'this is not a sealed secret');
  }
  return { keyId: head.readUInt8(0), iv: head.subarray(1), tag, cipherText };
}
