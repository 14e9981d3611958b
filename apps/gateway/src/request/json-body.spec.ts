import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { WeirError } from '@weir/domain';
import { describe, expect, it } from 'vitest';
import { readBody } from './json-body.js';

const limitBytes = 1_000;
const brokenOff = expect.objectContaining({ code: 'invalid_request' }) as WeirError;

/** What a server hands over, as far as its body goes. */
function incoming(): { request: IncomingMessage; body: PassThrough } {
  const body = new PassThrough();
  return { request: body as unknown as IncomingMessage, body };
}

describe('readBody', () => {
  it('gives the whole body, in however many pieces it comes', async () => {
    const { request, body } = incoming();
    const read = readBody(request, limitBytes);
    for (const piece of ['{"a":', '"né', '"}']) body.write(piece);
    body.end();
    expect(String(await read)).toBe('{"a":"né"}');
  });

  it('gives an empty body as such', async () => {
    const { request, body } = incoming();
    const read = readBody(request, limitBytes);
    body.end();
    expect((await read).length).toBe(0);
  });

  it('refuses a body over the limit once all of it has come, so that its sender reads why', async () => {
    const { request, body } = incoming();
    const read = readBody(request, limitBytes);
    body.write('x'.repeat(limitBytes));
    body.end('x');
    await expect(read).rejects.toMatchObject({ code: 'body_too_large' });
    expect(body.readableEnded).toBe(true);
  });

  it.each([
    ['breaks off', (body: PassThrough) => body.destroy()],
    ['fails', (body: PassThrough) => body.destroy(new Error('reset'))],
  ])('rejects when the request %s in the middle', async (_how, end) => {
    const { request, body } = incoming();
    const read = readBody(request, limitBytes);
    body.write('{');
    end(body);
    await expect(read).rejects.toEqual(brokenOff);
  });

  it('rejects when the caller had left before anybody read', async () => {
    const { request, body } = incoming();
    body.destroy();
    await new Promise((resolve) => body.once('close', resolve));
    await expect(readBody(request, limitBytes)).rejects.toEqual(brokenOff);
  });
});
