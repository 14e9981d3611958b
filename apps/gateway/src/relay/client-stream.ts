import type { ServerResponse } from 'node:http';
import { requestIdHeader } from '@weir/platform';
import type { RecordedAnswer } from '../idempotency/idempotency-store.js';

/** What every stream goes out with. */
export const streamHead: Readonly<Record<string, string>> = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  // Nginx and its kin hold streams back otherwise.
  'x-accel-buffering': 'no',
};

/** Told of an answer before its last byte is sent; null when it was longer than what is recorded. */
export type AnswerRecorder = (answer: RecordedAnswer | null) => Promise<void>;

/** The caller's side of an answer: written with back-pressure, and watched for the caller's leaving. */
export class ClientStream {
  private left = false;
  private waiting = false;
  private readonly leaveListeners: (() => void)[] = [];
  private lastWriteMs: number;
  private recording: Recording | null = null;

  constructor(
    private readonly response: ServerResponse,
    private readonly requestId: string,
    private readonly stallMs: number,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.lastWriteMs = now();
    response.once('close', () => {
      if (response.writableFinished) return;
      this.left = true;
      for (const listener of this.leaveListeners) listener();
    });
    // Writing to a socket that is gone: 'close' tells the same.
    response.on('error', () => undefined);
  }

  /** Whether the caller closed the connection before the answer was whole. */
  get hasLeft(): boolean {
    return this.left || (this.response.destroyed && !this.response.writableFinished);
  }

  /** Whether the answer is of use although the caller has left. */
  get isRecorded(): boolean {
    return this.recording !== null;
  }

  /** Keeps a copy of a good answer, also of what the caller is no longer there to take. */
  record(recorder: AnswerRecorder, bytesMax: number): void {
    this.recording = new Recording(recorder, bytesMax);
  }

  onLeave(listener: () => void): void {
    if (this.hasLeft) listener();
    else this.leaveListeners.push(listener);
  }

  /** Whether the head of a stream has gone out, but nothing of an answer yet: whatever comes must be events. */
  get isWaiting(): boolean {
    return this.waiting;
  }

  /**
   * Tells a caller whose call waits for its turn how it goes, in a comment of the stream; the first one sends the
   * stream's head. No part of the answer, hence not recorded.
   */
  comment(text: string, headers: Readonly<Record<string, string>>): void {
    if (this.hasLeft || this.response.writableEnded) return;
    if (!this.response.headersSent) {
      this.waiting = true;
      this.response.writeHead(200, this.headWith(headers));
    }
    this.sendComment(text);
  }

  /** Sends the head of a stream at once, unless a comment has done so. */
  begin(status: number, headers: Readonly<Record<string, string>>): void {
    this.recording?.begin(status, headers);
    this.waiting = false;
    if (this.hasLeft || this.response.headersSent) return;
    this.response.writeHead(status, this.headWith(headers));
    this.response.flushHeaders();
  }

  /** Sends a whole answer, head and body in one write. */
  answer(status: number, headers: Readonly<Record<string, string>>, body: Buffer | string): void {
    this.recording?.begin(status, headers);
    this.finish(body, () => {
      const head = this.headWith(headers);
      head.push('content-length', String(Buffer.byteLength(body)));
      this.response.writeHead(status, head);
      this.response.end(body);
    });
  }

  /** A head as Node takes it fastest: names and values in turn, the request id with them. */
  private headWith(headers: Readonly<Record<string, string>>): string[] {
    const head = [requestIdHeader, this.requestId];
    for (const name in headers) head.push(name, headers[name] ?? '');
    return head;
  }

  /** Writes, and resolves when the caller can take more. A caller that takes nothing for too long is cut off. */
  async write(bytes: Buffer): Promise<void> {
    this.recording?.add(bytes);
    if (this.hasLeft) return;
    this.lastWriteMs = this.now();
    if (this.response.write(bytes)) return;
    await new Promise<void>((resolve) => {
      const { response } = this;
      const done = (): void => {
        clearTimeout(stalled);
        response.off('drain', done);
        response.off('close', done);
        resolve();
      };
      const stalled = setTimeout(() => response.destroy(), this.stallMs);
      response.once('drain', done);
      response.once('close', done);
    });
  }

  get idleMs(): number {
    return this.now() - this.lastWriteMs;
  }

  /** Keeps the connection alive while nothing comes; only between events. */
  keepAlive(): void {
    if (!this.hasLeft && !this.response.writableEnded) this.sendComment('keep-alive');
  }

  /** A caller that does not take the last one gets no further one: comments never pile up. */
  private sendComment(text: string): void {
    if (this.response.writableNeedDrain) return;
    this.lastWriteMs = this.now();
    this.response.write(`: ${text}\n\n`);
  }

  end(bytes: Buffer | string = ''): void {
    this.finish(bytes, () => {
      if (bytes === '') this.response.end();
      else this.response.end(bytes);
    });
  }

  /** What is recorded is kept before the end goes out: the caller's next call must find it. */
  private finish(lastBytes: Buffer | string, send: () => void): void {
    const sendUnlessGone = (): void => {
      if (!this.hasLeft && !this.response.writableEnded) send();
    };
    const kept = this.recording?.finish(lastBytes);
    if (kept === undefined) sendUnlessGone();
    else void kept.finally(sendUnlessGone);
  }
}

/** A bounded copy of one answer. */
class Recording {
  private head: { status: number; contentType: string } | null = null;
  private readonly pieces: Buffer[] = [];
  private bytes = 0;
  private isFinished = false;

  constructor(
    private readonly recorder: AnswerRecorder,
    private readonly bytesMax: number,
  ) {}

  begin(status: number, headers: Readonly<Record<string, string>>): void {
    this.head = { status, contentType: headers['content-type'] ?? 'application/octet-stream' };
  }

  add(piece: Buffer): void {
    this.bytes += piece.length;
    if (this.bytes <= this.bytesMax) this.pieces.push(piece);
    else this.pieces.length = 0;
  }

  /** Hands a good answer over; undefined when there is none, or it was handed over before. */
  finish(lastBytes: Buffer | string): Promise<void> | undefined {
    if (this.isFinished || this.head === null || this.head.status !== 200) return undefined;
    this.isFinished = true;
    this.add(Buffer.from(lastBytes));
    const isKept = this.bytes <= this.bytesMax;
    return this.recorder(isKept ? { ...this.head, body: Buffer.concat(this.pieces) } : null);
  }
}
