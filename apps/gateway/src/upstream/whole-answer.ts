import { Readable } from 'node:stream';
import { errors, type Dispatcher } from 'undici';

export type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** A body whose length is known and bounded, read as it comes. */
export class WholeBody {
  private readonly chunks: Buffer[] = [];
  private end: 'complete' | Error | null = null;
  private waiting: { resolve: (bytes: Buffer) => void; reject: (error: Error) => void } | null =
    null;

  /** The whole body. @throws Error when it breaks off. */
  bytes(): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      this.waiting = { resolve, reject };
      this.tell();
    });
  }

  add(chunk: Buffer): void {
    this.chunks.push(chunk);
  }

  finish(end: 'complete' | Error): void {
    this.end ??= end;
    this.tell();
  }

  private tell(): void {
    if (this.waiting === null || this.end === null) return;
    if (this.end !== 'complete') return this.waiting.reject(this.end);
    const [first] = this.chunks;
    const isOne = this.chunks.length === 1 && first !== undefined;
    this.waiting.resolve(isOne ? first : Buffer.concat(this.chunks));
  }
}

type Head = {
  readonly status: number;
  readonly headers: AnswerHeaders;
  readonly body: WholeBody | Readable;
};

/**
 * Takes an answer that is expected to be no stream from undici without a stream between: most of them come in one piece.
 * What has no length, is too long, encoded or a stream all the same is read through a stream after all.
 */
export class AnswerHandler implements Dispatcher.DispatchHandler {
  private controller: Dispatcher.DispatchController | null = null;
  private abortReason: Error | null = null;
  private body: WholeBody | Readable | null = null;

  constructor(
    private readonly wholeBytesMax: number,
    private readonly onHead: (head: Head) => void,
    private readonly onFailure: (error: Error) => void,
  ) {}

  /** Stops the call, now or as soon as it has a connection. */
  abort(reason: Error): void {
    this.abortReason = reason;
    this.controller?.abort(reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.abortReason !== null) controller.abort(this.abortReason);
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: AnswerHeaders,
  ): void {
    if (status < 200) return;
    this.body = this.isWhole(headers) ? new WholeBody() : streamOf(controller);
    this.onHead({ status, headers, body: this.body });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.body instanceof WholeBody) this.body.add(chunk);
    else if (this.body?.push(chunk) === false) controller.pause();
  }

  onResponseEnd(): void {
    if (this.body instanceof WholeBody) this.body.finish('complete');
    else this.body?.push(null);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.body === null) this.onFailure(error);
    else if (this.body instanceof WholeBody) this.body.finish(error);
    else this.body.destroy(error);
  }

  private isWhole(headers: AnswerHeaders): boolean {
    const length = Number(headers['content-length']);
    const encoding = headers['content-encoding'];
    return (
      length >= 0 &&
      length <= this.wholeBytesMax &&
      (encoding === undefined || encoding === 'identity') &&
      !isEventStream(headers)
    );
  }
}

export function isEventStream(headers: AnswerHeaders): boolean {
  return String(headers['content-type'] ?? '').startsWith('text/event-stream');
}

/** Reads on as its reader does; giving it up before its end stops the upstream. */
function streamOf(controller: Dispatcher.DispatchController): Readable {
  const stream = new Readable({
    read: () => controller.resume(),
    destroy(this: Readable, error, done) {
      const reason = error ?? (this.readableEnded ? null : new errors.RequestAbortedError());
      if (reason !== null) controller.abort(reason);
      done(reason);
    },
  });
  // Whoever reads it hears of an error by reading; nobody may be reading any more.
  stream.on('error', () => undefined);
  return stream;
}
