import type { Worker } from 'node:worker_threads';
import type { CountingReply, CountingRequest } from './counting-protocol.js';
import type { EncodingName, RankTable } from './rank-table.js';

export interface CountingPoolOptions {
  readonly threads: number;
  /** Jobs that may wait besides those that run. */
  readonly queue_jobs_max: number;
  /** Text that may wait, in UTF-16 units. */
  readonly queue_chars_max: number;
  /** After this, a caller gets no count; the job, if it runs, is left to end. */
  readonly answer_ms_max: number;
  /** A thread that holds one job for longer is ended and replaced. */
  readonly stuck_ms_max: number;
  readonly startThread: () => Worker;
  /** A thread failed; counting goes on with a new one. Never carries prompt text. */
  readonly onFailure: (error: Error) => void;
  readonly now: () => number;
}

interface Job {
  readonly id: number;
  readonly table: RankTable;
  readonly texts: readonly string[];
  readonly chars: number;
  /** Settles the caller once; later calls do nothing. */
  readonly answer: (tokens: number | undefined) => void;
}

interface Slot {
  worker: Worker;
  job: Job | undefined;
  stuckTimer: NodeJS.Timeout | undefined;
  answeredAny: boolean;
  readonly tablesSent: Set<EncodingName>;
}

const RESTART_MS_MIN = 100;
const RESTART_MS_MAX = 30_000;
const CLOSE_MS_MAX = 2_000;

/**
 * Counts texts on worker threads with a bounded queue. `count` never rejects: undefined means
 * that the caller has to estimate (queue full, too late, thread lost, closed).
 */
export class CountingPool {
  private readonly slots: Slot[] = [];
  private readonly queue: Job[] = [];
  private queuedChars = 0;
  private nextId = 1;
  private closed = false;
  private failuresInRow = 0;
  private noStartBefore = -Infinity;
  private threadFailures = 0;

  constructor(private readonly options: CountingPoolOptions) {}

  /** Starts the threads ahead of the first job. */
  warmUp(): void {
    while (this.canStart()) this.startSlot();
  }

  /** @returns tokens of all texts together, or undefined */
  count(table: RankTable, texts: readonly string[]): Promise<number | undefined> {
    const chars = texts.reduce((sum, text) => sum + text.length, 0);
    const idle = this.idleSlot();
    const hasRoom =
      this.queue.length < this.options.queue_jobs_max &&
      this.queuedChars + chars <= this.options.queue_chars_max;
    if (this.closed || (!idle && (this.slots.length === 0 || !hasRoom))) {
      return Promise.resolve(undefined);
    }
    return new Promise((resolve) => {
      const deadline = setTimeout(() => {
        this.dropQueued(job);
        job.answer(undefined);
      }, this.options.answer_ms_max);
      const job: Job = {
        id: this.nextId++,
        table,
        texts,
        chars,
        answer: (tokens) => {
          clearTimeout(deadline);
          resolve(tokens);
        },
      };
      if (idle) this.run(idle, job);
      else {
        this.queue.push(job);
        this.queuedChars += chars;
      }
    });
  }

  stats(): { running: number; queued: number; threads: number; threadFailures: number } {
    return {
      running: this.slots.filter((slot) => slot.job).length,
      queued: this.queue.length,
      threads: this.slots.length,
      threadFailures: this.threadFailures,
    };
  }

  /** Takes no more jobs, sends those that wait to the estimate, lets running ones end (2 s). */
  async close(): Promise<void> {
    this.closed = true;
    for (const job of this.queue.splice(0)) job.answer(undefined);
    this.queuedChars = 0;
    await Promise.all(
      this.slots.splice(0).map(async (slot) => {
        if (slot.job) await this.jobEnd(slot);
        clearTimeout(slot.stuckTimer);
        slot.job?.answer(undefined);
        await slot.worker.terminate();
      }),
    );
  }

  private jobEnd(slot: Slot): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, CLOSE_MS_MAX);
      const done = () => {
        clearTimeout(timer);
        resolve();
      };
      slot.worker.once('message', done);
      slot.worker.once('exit', done);
    });
  }

  private canStart(): boolean {
    return (
      !this.closed &&
      this.slots.length < this.options.threads &&
      this.options.now() >= this.noStartBefore
    );
  }

  private idleSlot(): Slot | undefined {
    const idle = this.slots.find((slot) => !slot.job);
    if (idle) return idle;
    return this.canStart() ? this.startSlot() : undefined;
  }

  private startSlot(): Slot {
    const worker = this.options.startThread();
    const slot: Slot = {
      worker,
      job: undefined,
      stuckTimer: undefined,
      answeredAny: false,
      tablesSent: new Set(),
    };
    this.slots.push(slot);
    let reason: Error | undefined;
    worker.on('message', (reply: CountingReply) => this.onReply(slot, reply));
    worker.on('error', (error) => {
      reason = error instanceof Error ? error : new Error(String(error));
    });
    worker.on('exit', (code) => {
      this.onExit(slot, reason ?? new Error(`Counting thread ended with code ${code}`));
    });
    // An idle thread must not keep the process alive.
    worker.unref();
    return slot;
  }

  private run(slot: Slot, job: Job): void {
    slot.job = job;
    slot.worker.ref();
    slot.stuckTimer = setTimeout(() => void slot.worker.terminate(), this.options.stuck_ms_max);
    if (!slot.tablesSent.has(job.table.name)) {
      this.send(slot, { kind: 'table', table: job.table });
      slot.tablesSent.add(job.table.name);
    }
    this.send(slot, { kind: 'count', id: job.id, encoding: job.table.name, texts: job.texts });
  }

  private send(slot: Slot, request: CountingRequest): void {
    slot.worker.postMessage(request);
  }

  private onReply(slot: Slot, reply: CountingReply): void {
    const { job } = slot;
    if (!job || job.id !== reply.id) return;
    this.release(slot);
    slot.answeredAny = true;
    this.failuresInRow = 0;
    if ('error' in reply) {
      this.threadFailures++;
      this.options.onFailure(new Error(`Counting failed: ${reply.error}`));
      job.answer(undefined);
    } else job.answer(reply.tokens);
    this.runNext();
  }

  /** The job is not tried again: it may be what ended the thread. */
  private onExit(slot: Slot, reason: Error): void {
    const { job } = slot;
    this.release(slot);
    const index = this.slots.indexOf(slot);
    if (index !== -1) this.slots.splice(index, 1);
    if (this.closed) {
      job?.answer(undefined);
      return;
    }
    this.threadFailures++;
    this.failuresInRow++;
    // A thread that had worked is replaced at once; one that never did, with growing pauses.
    const pause_ms = slot.answeredAny
      ? 0
      : Math.min(RESTART_MS_MAX, RESTART_MS_MIN * 2 ** Math.min(this.failuresInRow - 1, 10));
    this.noStartBefore = this.options.now() + pause_ms;
    this.options.onFailure(reason);
    job?.answer(undefined);
    this.runNext();
  }

  private release(slot: Slot): void {
    clearTimeout(slot.stuckTimer);
    slot.job = undefined;
    slot.worker.unref();
  }

  private runNext(): void {
    for (let job = this.queue[0]; job; job = this.queue[0]) {
      const slot = this.idleSlot();
      if (!slot) {
        // With no thread left and none to be started yet, waiting would be in vain.
        if (this.slots.length === 0) {
          this.dropQueued(job);
          job.answer(undefined);
          continue;
        }
        return;
      }
      this.dropQueued(job);
      this.run(slot, job);
    }
  }

  private dropQueued(job: Job): void {
    const index = this.queue.indexOf(job);
    if (index === -1) return;
    this.queue.splice(index, 1);
    this.queuedChars -= job.chars;
  }
}
