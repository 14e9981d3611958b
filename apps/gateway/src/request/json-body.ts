import type { IncomingMessage } from 'node:http';
import { WeirError } from '@weir/domain';

export type JsonObject = Readonly<Record<string, unknown>>;

/** Past the limit this much more is read and thrown away, so that the caller gets to read the 413. */
const discardedBytesMax = 64 * 1024 * 1024;

/** Nesting that no client of a chat API needs, and that recursive code could not walk. */
const depthMax = 64;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Refuses a request whose body is not declared to be JSON, or is encoded.
 *
 * @throws WeirError `unsupported_media_type`
 */
export function requireJsonContent(headers: IncomingMessage['headers']): void {
  const contentType = headers['content-type'];
  const mediaType = contentType?.split(';', 1)[0]?.trim().toLowerCase();
  if (mediaType !== 'application/json') {
    const found = mediaType === undefined ? 'is missing' : `is "${mediaType.slice(0, 80)}"`;
    throw new WeirError(
      'unsupported_media_type',
      `The content type ${found}. Send a JSON body with the header "content-type: application/json".`,
    );
  }
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') {
    throw new WeirError(
      'unsupported_media_type',
      'Compressed request bodies are not accepted. Send the body without content-encoding.',
    );
  }
}

/**
 * Reads a request's body whole.
 *
 * @throws WeirError `body_too_large` when it is longer than `limitBytes`; the rest is then read and dropped, within a
 * bound, because a caller that is still sending would otherwise see a reset connection in place of the answer.
 */
export function readBody(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    let isWhole = false;
    const tooLarge = (): void =>
      reject(
        new WeirError(
          'body_too_large',
          `The request body is larger than ${limitBytes} bytes. Send a smaller prompt, or pass large media by URL.`,
          { limit_bytes: limitBytes },
        ),
      );
    const brokenOff = (cause?: unknown): void =>
      reject(
        new WeirError(
          'invalid_request',
          'The request ended before its whole body had arrived.',
          {},
          { cause },
        ),
      );
    // A caller who left before this: no event tells of it any more.
    if (request.destroyed) {
      brokenOff(request.errored);
      return;
    }
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= limitBytes) {
        chunks.push(chunk);
        return;
      }
      chunks.length = 0;
      if (bytes <= limitBytes + discardedBytesMax) return;
      tooLarge();
      request.destroy();
    });
    request.once('end', () => {
      isWhole = true;
      const [first] = chunks;
      if (bytes > limitBytes) tooLarge();
      else
        resolve(chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks, bytes));
    });
    request.once('error', brokenOff);
    request.once('close', () => {
      if (!isWhole) brokenOff();
    });
  });
}

/**
 * Parses a body that must be a JSON object.
 *
 * @throws WeirError `invalid_request` that says what is wrong, without quoting the body: prompts are never logged.
 */
export function parseJsonObject(bytes: Buffer): JsonObject {
  if (bytes.length === 0) {
    throw new WeirError('invalid_request', 'The request has no body. Send a JSON object.');
  }
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    const position = /at position (\d+)/.exec(error instanceof Error ? error.message : '')?.[1];
    const where = position === undefined ? '' : ` (at character ${position})`;
    throw new WeirError(
      'invalid_request',
      `The request body is not valid JSON${where}. Check quotes, commas and brackets.`,
    );
  }
  if (!isJsonObject(value)) {
    throw new WeirError(
      'invalid_request',
      'The request body must be a JSON object, as in {"model": ...}.',
    );
  }
  if (hasManyBrackets(bytes) && !isWithinDepth(value, depthMax)) {
    throw new WeirError(
      'invalid_request',
      `The request body is nested deeper than ${depthMax} levels.`,
    );
  }
  return value;
}

/** Whether there are more opening brackets than levels allowed: most bodies have few, and need no walk. */
function hasManyBrackets(bytes: Buffer): boolean {
  let brackets = 0;
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index];
    if (byte !== 0x7b && byte !== 0x5b) continue;
    brackets += 1;
    if (brackets > depthMax) return true;
  }
  return false;
}

/** Walks level by level rather than by recursion: the input decides the depth. */
function isWithinDepth(root: unknown, levels: number): boolean {
  let level: unknown[] = [root];
  for (let depth = 0; depth <= levels; depth += 1) {
    const next: unknown[] = [];
    for (const value of level) {
      if (typeof value !== 'object' || value === null) continue;
      for (const child of Array.isArray(value) ? value : Object.values(value)) {
        if (typeof child === 'object' && child !== null) next.push(child);
      }
    }
    if (next.length === 0) return true;
    level = next;
  }
  return false;
}
