import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { Dispatcher } from 'undici';
import { describe, expect, it, vi } from 'vitest';
import { AnswerHandler, WholeBody } from './whole-answer.js';

type Controller = Dispatcher.DispatchController;

function open(wholeBytesMax = 1_000) {
  const controller = {
    aborted: false,
    paused: false,
    reason: null,
    abort: vi.fn<Controller['abort']>(),
    pause: vi.fn<Controller['pause']>(),
    resume: vi.fn<Controller['resume']>(),
  };
  const onHead = vi.fn<(head: { status: number; body: WholeBody | Readable }) => void>();
  const onFailure = vi.fn<(error: Error) => void>();
  const handler = new AnswerHandler(wholeBytesMax, onHead, onFailure);
  const bodyOf = (headers: Record<string, string>): WholeBody | Readable => {
    handler.onRequestStart(controller);
    handler.onResponseStart(controller, 200, headers);
    const body = onHead.mock.lastCall?.[0].body;
    if (body === undefined) throw new Error('no head came');
    return body;
  };
  const give = (...pieces: string[]): void => {
    for (const piece of pieces) handler.onResponseData(controller, Buffer.from(piece));
  };
  return { controller, handler, onHead, onFailure, bodyOf, give };
}

function whole(body: WholeBody | Readable): WholeBody {
  if (body instanceof WholeBody) return body;
  throw new Error('the body came as a stream');
}

function stream(body: WholeBody | Readable): Readable {
  if (body instanceof Readable) return body;
  throw new Error('the body came whole');
}

describe('AnswerHandler', () => {
  it('gives a body of known length whole, whether it is asked for before or after it came', async () => {
    for (const askFirst of [true, false]) {
      for (const pieces of [['{"a":1}'], ['{"a"', ':1}'], []]) {
        const { handler, bodyOf, give } = open();
        const body = whole(bodyOf({ 'content-length': String(pieces.join('').length) }));
        const early = askFirst ? body.bytes() : null;
        give(...pieces);
        handler.onResponseEnd();
        expect(String(await (early ?? body.bytes()))).toBe(pieces.join(''));
      }
    }
  });

  it('reads through a stream what has no length, is too long, encoded, or a stream of events', async () => {
    for (const headers of [
      {},
      { 'content-length': '1001' },
      { 'content-length': '4', 'content-encoding': 'gzip' },
      { 'content-length': '4', 'content-type': 'text/event-stream; charset=utf-8' },
    ]) {
      const { handler, bodyOf, give } = open();
      const body = stream(bodyOf(headers));
      give('12', '34');
      handler.onResponseEnd();
      expect(String(await buffer(body))).toBe('1234');
    }
  });

  it('says that a body broke off, and of an answer without a head that the call failed', async () => {
    const broken = new Error('other side closed');
    const known = open();
    const body = whole(known.bodyOf({ 'content-length': '10' }));
    known.give('123');
    known.handler.onResponseError(known.controller, broken);
    await expect(body.bytes()).rejects.toBe(broken);
    expect(known.onFailure).not.toHaveBeenCalled();

    const streamed = open();
    const pieces = stream(streamed.bodyOf({}));
    streamed.give('123');
    streamed.handler.onResponseError(streamed.controller, broken);
    await expect(buffer(pieces)).rejects.toBe(broken);

    const headless = open();
    headless.handler.onResponseError(headless.controller, broken);
    expect(headless.onFailure).toHaveBeenCalledExactlyOnceWith(broken);
  });

  it('waits for the final head when informational ones come first', () => {
    const { controller, handler, onHead } = open();
    handler.onRequestStart(controller);
    handler.onResponseStart(controller, 103, {});
    expect(onHead).not.toHaveBeenCalled();
    handler.onResponseStart(controller, 200, { 'content-length': '0' });
    expect(onHead).toHaveBeenCalledOnce();
  });

  it('stops a call that was cut before it had a connection, and one that runs', () => {
    const reason = new Error('cut');
    const early = open();
    early.handler.abort(reason);
    early.handler.onRequestStart(early.controller);
    expect(early.controller.abort).toHaveBeenCalledExactlyOnceWith(reason);
    const late = open();
    late.bodyOf({ 'content-length': '10' });
    late.handler.abort(reason);
    expect(late.controller.abort).toHaveBeenCalledExactlyOnceWith(reason);
  });

  it('holds the upstream back while a stream is not read, and stops it when it is given up', () => {
    const { controller, bodyOf, give } = open();
    const body = stream(bodyOf({}));
    give('x'.repeat(200_000));
    expect(controller.pause).toHaveBeenCalled();
    expect(controller.resume).not.toHaveBeenCalled();
    body.read();
    expect(controller.resume).toHaveBeenCalled();
    body.destroy();
    expect(controller.abort).toHaveBeenCalledOnce();
  });
});
