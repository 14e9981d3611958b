import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SseSplitter, type SseEvent } from './sse-splitter.js';

function splitAt(text: string, cuts: readonly number[]): SseEvent[] {
  const bytes = Buffer.from(text);
  const splitter = new SseSplitter();
  const edges = [
    ...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length]),
  ].sort((a, b) => a - b);
  const events: SseEvent[] = [];
  for (let index = 1; index < edges.length; index += 1) {
    // Copied, as sockets do not reuse memory but tests would.
    events.push(...splitter.push(Buffer.from(bytes.subarray(edges[index - 1], edges[index]))));
  }
  const rest = splitter.rest();
  if (rest.length > 0) events.push({ bytes: rest, name: 'REST', data: null });
  return events;
}

const stream = [
  'data: {"text":"天地玄黄 😀"}\n\n',
  ': a comment\n\n',
  'event: message_start\r\ndata: {"a":1}\r\n\r\n',
  'data: first line\ndata: second line\n\n',
  'data:no blank\rid: 7\r\r',
  'data: [DONE]\n\n',
].join('');

describe('SseSplitter', () => {
  it('reads the same events however the bytes are split, and forwards the very bytes', () => {
    const expected = [
      '{"text":"天地玄黄 😀"}',
      null,
      '{"a":1}',
      'first line\nsecond line',
      'no blank',
      '[DONE]',
    ];
    fc.assert(
      fc.property(fc.array(fc.nat(400), { maxLength: 60 }), (cuts) => {
        const events = splitAt(stream, cuts);
        expect(events.map((event) => event.data)).toEqual(expected);
        expect(Buffer.concat(events.map((event) => event.bytes)).toString()).toBe(stream);
      }),
    );
  });

  it('reads the same events when every byte comes alone', () => {
    const events = splitAt(stream, [...Array(400).keys()]);
    expect(events).toHaveLength(6);
    expect(events[2]?.name).toBe('message_start');
  });

  it('takes an event that is cut off for no event', () => {
    const events = splitAt('data: {"whole":1}\n\ndata: {"usage":{"prompt_tok', []);
    expect(events.map((event) => event.name)).toEqual([null, 'REST']);
  });

  it('holds no more than its bound of an event that never ends', () => {
    const splitter = new SseSplitter();
    let passedOn = 0;
    for (let index = 0; index < 100; index += 1) {
      for (const event of splitter.push(Buffer.alloc(100_000, 'x'))) passedOn += event.bytes.length;
    }
    expect(passedOn).toBeGreaterThan(10_000_000 - 4 * 1024 * 1024 - 100_000);
  });
});
