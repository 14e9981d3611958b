import type { ServerResponse } from 'node:http';

/** At full speed events are gathered up to this size: a write per event costs more than making the event. */
const gatheredCharactersMax = 8_192;

/**
 * Writes events to a client that may be slower than we are. `write` returns true when the caller may go on at once,
 * else it calls `resume` when there is room again. After the connection is gone, `resume` is never called.
 */
export class EventWriter {
  private gathered = '';

  constructor(
    private readonly response: ServerResponse,
    private readonly options: { crlf: boolean; comments: boolean; splitBytes: number },
  ) {}

  /** Like `write`, but may keep the events until more have come or `write` is called. */
  gather(events: string, resume: () => void): boolean {
    this.gathered += events;
    return this.gathered.length < gatheredCharactersMax || this.write('', resume);
  }

  write(moreEvents: string, resume: () => void): boolean {
    const events = this.gathered + moreEvents;
    this.gathered = '';
    if (events === '') return true;
    let text = this.options.comments ? `: keep-alive\n\n${events}` : events;
    if (this.options.crlf) text = text.replaceAll('\n', '\r\n');
    if (this.options.splitBytes > 0) {
      this.writeInPieces(Buffer.from(text), resume);
      return false;
    }
    if (this.response.write(text)) return true;
    this.response.once('drain', resume);
    return false;
  }

  /** Each piece gets its own turn of the event loop, so that it travels as a packet of its own. */
  private writeInPieces(bytes: Buffer, resume: () => void): void {
    let offset = 0;
    const next = (): void => {
      if (this.response.destroyed) return;
      if (offset >= bytes.length) {
        resume();
        return;
      }
      const piece = bytes.subarray(offset, offset + this.options.splitBytes);
      offset += piece.length;
      if (this.response.write(piece)) setImmediate(next);
      else this.response.once('drain', next);
    };
    next();
  }
}
