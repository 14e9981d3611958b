import type { ServerResponse } from 'node:http';

/** The caller's side of an answer: written with back-pressure, and watched for the caller's leaving. */
export class ClientStream {
  private left = false;
  private readonly leaveListeners: (() => void)[] = [];
  private lastWriteMs: number;

  constructor(
    private readonly response: ServerResponse,
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

  onLeave(listener: () => void): void {
    if (this.hasLeft) listener();
    else this.leaveListeners.push(listener);
  }

  /** Sends the head of a stream at once. */
  begin(status: number, headers: Readonly<Record<string, string>>): void {
    if (this.hasLeft) return;
    this.response.writeHead(status, headers);
    this.response.flushHeaders();
  }

  /** Sends a whole answer, head and body in one write. */
  answer(status: number, headers: Readonly<Record<string, string>>, body: Buffer | string): void {
    if (this.hasLeft) return;
    this.response.writeHead(status, {
      ...headers,
      'content-length': String(Buffer.byteLength(body)),
    });
    this.response.end(body);
  }

  /** Writes, and resolves when the caller can take more. A caller that takes nothing for too long is cut off. */
  async write(bytes: Buffer | string): Promise<void> {
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
    if (this.hasLeft || this.response.writableNeedDrain || this.response.writableEnded) return;
    this.lastWriteMs = this.now();
    this.response.write(': keep-alive\n\n');
  }

  end(bytes?: Buffer | string): void {
    if (this.hasLeft || this.response.writableEnded) return;
    if (bytes === undefined) this.response.end();
    else this.response.end(bytes);
  }
}
