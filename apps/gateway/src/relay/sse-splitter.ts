/** One event of a text/event-stream, with the very bytes it came in. */
export type SseEvent = {
  /** The bytes, the blank line that ends the event included. Forwarding these forwards the stream unchanged. */
  readonly bytes: Buffer;
  /** The `event:` field, or null. */
  readonly name: string | null;
  /** The `data:` lines joined by a line feed; null for comments and empty events. */
  readonly data: string | null;
};

const lineFeed = 0x0a;
const carriageReturn = 0x0d;

/** Longer events are passed on in pieces, unread: nothing that is metered comes in such sizes, and memory is bounded. */
const eventBytesMax = 4 * 1024 * 1024;

/**
 * Cuts a stream of bytes into server-sent events, however the bytes are split: inside a line ending, a UTF-8
 * character or a JSON text. Line endings may be LF, CRLF or CR (WHATWG HTML, "Server-sent events").
 */
export class SseSplitter {
  private pending: Buffer[] = [];
  private pendingBytes = 0;
  private atLineStart = true;
  private lastWasReturn = false;

  /** The events that are complete with this chunk, in order. Works on a view of the chunk: do not reuse its memory. */
  push(chunk: Buffer): SseEvent[] {
    const events: SseEvent[] = [];
    let start = 0;
    for (let index = 0; index < chunk.length; index += 1) {
      const byte = chunk[index];
      if (byte !== lineFeed && byte !== carriageReturn) {
        this.atLineStart = false;
        this.lastWasReturn = false;
        continue;
      }
      const isSecondHalf = byte === lineFeed && this.lastWasReturn;
      this.lastWasReturn = byte === carriageReturn;
      if (isSecondHalf) continue;
      if (!this.atLineStart) {
        this.atLineStart = true;
        continue;
      }
      // A blank line: the event ends here, a line feed that belongs to its carriage return included.
      let end = index + 1;
      if (byte === carriageReturn && chunk[end] === lineFeed) {
        end += 1;
        index += 1;
        this.lastWasReturn = false;
      }
      events.push(parseEvent(this.take(chunk.subarray(start, end))));
      start = end;
    }
    if (start < chunk.length) {
      this.pending.push(chunk.subarray(start));
      this.pendingBytes += chunk.length - start;
      if (this.pendingBytes > eventBytesMax) {
        events.push({ bytes: this.take(Buffer.alloc(0)), name: null, data: null });
      }
    }
    return events;
  }

  /** What is left when the stream ends in the middle of an event. A reader must not take it for one. */
  rest(): Buffer {
    return this.take(Buffer.alloc(0));
  }

  private take(last: Buffer): Buffer {
    if (this.pending.length === 0) return last;
    const whole = Buffer.concat([...this.pending, last], this.pendingBytes + last.length);
    this.pending = [];
    this.pendingBytes = 0;
    return whole;
  }
}

function parseEvent(bytes: Buffer): SseEvent {
  let name: string | null = null;
  let data: string | null = null;
  const text = bytes.toString('utf8');
  // The fast case, nearly all of what LLM APIs send: one data line.
  if (
    text.startsWith('data: ') &&
    text.endsWith('\n\n') &&
    text.indexOf('\n') === text.length - 2
  ) {
    const line = text.slice(6, -2);
    if (!line.includes('\r')) return { bytes, name, data: line };
  }
  for (const line of text.replace(/^\uFEFF/, '').split(/\r\n|\n|\r/)) {
    const colon = line.indexOf(':');
    if (colon === 0 || line === '') continue;
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (field === 'data') data = data === null ? value : `${data}\n${value}`;
    else if (field === 'event') name = value;
  }
  return { bytes, name, data };
}

/** One event as text. `data` must not contain line breaks, which JSON does not. */
export function sseEvent(data: string, name?: string): string {
  return name === undefined ? `data: ${data}\n\n` : `event: ${name}\ndata: ${data}\n\n`;
}
