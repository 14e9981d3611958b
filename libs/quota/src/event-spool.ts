import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, stat, unlink, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { WeirError } from '@weir/domain';

export type EventSpoolOptions = {
  /** A folder that no other process writes to. */
  readonly directory: string;
  /** Beyond it nothing more is taken: better to refuse calls than to lose what they cost. Default 1 GiB. */
  readonly maxBytes?: number;
};

const segmentPattern = /^spool-(\d{8})\.ndjson$/;
const defaultMaxBytes = 1 << 30;

/**
 * Lines that must outlive the process, in append-only files: what was admitted and settled while Redis was away. A line
 * is on the disk (fsync) when `append` resolves; lines that come together share one fsync. Read back in order, file by
 * file; a file is deleted when all of it was delivered, so a crash in between delivers some lines again: delivery is
 * idempotent by lease id.
 */
export class EventSpool {
  private readonly maxBytes: number;
  private handle: FileHandle | null = null;
  private segment = 0;
  private bytes = 0;
  private pendingCount = 0;
  private waiting: { line: string; resolve: () => void; reject: (error: unknown) => void }[] = [];
  private last: Promise<unknown> = Promise.resolve();

  private constructor(private readonly options: EventSpoolOptions) {
    this.maxBytes = options.maxBytes ?? defaultMaxBytes;
  }

  /** Opens the folder; lines that an earlier process left there wait to be delivered. */
  static async open(options: EventSpoolOptions): Promise<EventSpool> {
    await mkdir(options.directory, { recursive: true });
    const spool = new EventSpool(options);
    for (const name of await spool.segments()) {
      const path = join(options.directory, name);
      spool.bytes += (await stat(path)).size;
      spool.segment = Math.max(spool.segment, Number(segmentPattern.exec(name)?.[1]));
      for await (const line of linesOf(path)) if (line !== '') spool.pendingCount += 1;
    }
    return spool;
  }

  /** Lines that are not delivered yet. */
  get pending(): number {
    return this.pendingCount + this.waiting.length;
  }

  get isFull(): boolean {
    return this.bytes >= this.maxBytes;
  }

  /** Writes a line; resolves when it is on the disk. Rejects with `quota_unavailable` when the spool is full. */
  append(value: unknown): Promise<void> {
    if (this.isFull) {
      return Promise.reject(
        new WeirError('quota_unavailable', 'the spool for events is full', { bytes: this.bytes }),
      );
    }
    // Readers of lines also break at these two, which JSON leaves as they are.
    const text = JSON.stringify(value)
      .replaceAll('\u2028', '\\u2028')
      .replaceAll('\u2029', '\\u2029');
    const line = `${text}\n`;
    this.bytes += Buffer.byteLength(line);
    return new Promise((resolve, reject) => {
      this.waiting.push({ line, resolve, reject });
      // Whoever comes while one batch is being written is in the next.
      if (this.waiting.length === 1) void this.exclusively(() => this.writeWaiting());
    });
  }

  /**
   * Delivers everything, oldest first, until the spool is empty. Rejects with the first delivery that fails; what was
   * not delivered stays.
   */
  async drain(deliver: (value: unknown) => Promise<void>): Promise<void> {
    // New lines go to a new file, so that a file being read is never written.
    const last = await this.exclusively(async () => {
      await this.handle?.close();
      this.handle = null;
      return this.segment;
    });
    for (const name of await this.segments()) {
      if (Number(segmentPattern.exec(name)?.[1]) > last) return;
      const path = join(this.options.directory, name);
      let delivered = 0;
      for await (const line of linesOf(path)) {
        const value = parsed(line);
        if (value === undefined) continue;
        await deliver(value);
        delivered += 1;
      }
      const { size } = await stat(path);
      await unlink(path);
      this.bytes -= size;
      this.pendingCount -= delivered;
    }
  }

  /** Shows every line, oldest first, and leaves all of them where they are. */
  async read(show: (value: unknown) => void): Promise<void> {
    await this.exclusively(async () => {
      for (const name of await this.segments()) {
        for await (const line of linesOf(join(this.options.directory, name))) {
          const value = parsed(line);
          if (value !== undefined) show(value);
        }
      }
    });
  }

  /** Deletes everything written so far, if `isDone` still holds when no line is being written. Tells whether it did. */
  async clear(isDone: () => boolean): Promise<boolean> {
    return this.exclusively(async () => {
      if (!isDone()) return false;
      await this.handle?.close();
      this.handle = null;
      for (const name of await this.segments()) await unlink(join(this.options.directory, name));
      this.bytes = this.waiting.reduce((sum, { line }) => sum + Buffer.byteLength(line), 0);
      this.pendingCount = 0;
      return true;
    });
  }

  async close(): Promise<void> {
    await this.exclusively(async () => {
      await this.handle?.close();
      this.handle = null;
    });
  }

  private async writeWaiting(): Promise<void> {
    const batch = this.waiting;
    this.waiting = [];
    if (batch.length === 0) return;
    try {
      this.handle ??= await this.nextSegment();
      await this.handle.appendFile(batch.map(({ line }) => line).join(''));
      await this.handle.datasync();
      this.pendingCount += batch.length;
      for (const { resolve } of batch) resolve();
    } catch (error) {
      for (const { line, reject } of batch) {
        this.bytes -= Buffer.byteLength(line);
        reject(error);
      }
    }
  }

  /** One at a time: writing, closing and changing files never overlap. */
  private exclusively<T>(work: () => Promise<T>): Promise<T> {
    const done = this.last.then(work);
    this.last = done.then(
      () => undefined,
      () => undefined,
    );
    return done;
  }

  private async nextSegment(): Promise<FileHandle> {
    this.segment += 1;
    const name = `spool-${this.segment.toString().padStart(8, '0')}.ndjson`;
    const handle = await open(join(this.options.directory, name), 'ax');
    // The file's own entry has to be on the disk too.
    const folder = await open(this.options.directory, 'r');
    await folder.sync();
    await folder.close();
    return handle;
  }

  private async segments(): Promise<string[]> {
    const names = await readdir(this.options.directory);
    return names.filter((name) => segmentPattern.test(name)).sort();
  }
}

function linesOf(path: string): AsyncIterable<string> {
  return createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY });
}

/** A line that a crash cut short was never confirmed to anyone: it is left out. */
function parsed(line: string): unknown {
  if (line === '') return undefined;
  try {
    return JSON.parse(line) as unknown;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
