import type { Logger } from '@weir/platform';
import { type Job, Queue, UnrecoverableError, Worker } from 'bullmq';
import { z } from 'zod';
import { exportQueueName, queueConnection } from './job-queues.js';
import {
  ExportCancelled,
  ExportImpossible,
  type ExportOptions,
  failExport,
  runUsageExport,
} from './usage-export.js';

const payloadSchema = z.object({ exportId: z.uuid() });

export type ExportWorkerOptions = ExportOptions & {
  readonly redisUrl: string;
  readonly prefix: string;
  readonly logger: Logger;
};

/** Exports at once in one process: each holds a database connection for as long as it reads. */
const concurrency = 2;

/** Runs the exports that the admin API queues. */
export class ExportWorker {
  private readonly queue: Queue;
  private readonly worker: Worker;

  constructor(private readonly options: ExportWorkerOptions) {
    const { redisUrl, prefix, logger } = options;
    const connection = queueConnection(redisUrl);
    this.queue = new Queue(exportQueueName, { connection, prefix });
    this.worker = new Worker(exportQueueName, (job) => this.run(job), {
      connection,
      prefix,
      concurrency,
    });
    const onError = (error: Error) => logger.debug({ err: error }, 'job queue connection');
    this.queue.on('error', onError);
    this.worker.on('error', onError);
  }

  async close(): Promise<void> {
    await this.worker.close();
    await this.queue.close();
  }

  /**
   * Exports that are marked as running although no queue has them: Redis has lost the job, or the worker died so often
   * that the queue gave it up. They are queued again; the row is the truth.
   */
  async requeueLost(): Promise<number> {
    const { prisma } = this.options.database;
    const running = await prisma.exportJob.findMany({
      where: { status: 'running' },
      select: { id: true },
      take: 100,
    });
    let requeued = 0;
    for (const { id } of running) {
      if (await this.queue.getJob(id)) continue;
      const { count } = await prisma.exportJob.updateMany({
        where: { id, status: 'running' },
        data: { status: 'queued' },
      });
      if (count === 0) continue;
      await this.queue.add(
        'export',
        { exportId: id },
        { jobId: id, attempts: 3, removeOnComplete: true, removeOnFail: true },
      );
      requeued += 1;
    }
    return requeued;
  }

  private async run(job: Job): Promise<void> {
    const { logger } = this.options;
    const { exportId } = payloadSchema.parse(job.data);
    try {
      await runUsageExport(exportId, this.options, (done, total) =>
        job.updateProgress({ done: done.toString(), total: total.toString() }),
      );
      logger.info({ export_id: exportId }, 'export done');
    } catch (error) {
      if (error instanceof ExportCancelled) {
        logger.info({ export_id: exportId }, 'export cancelled');
        return;
      }
      const isLast = job.attemptsMade + 1 >= (job.opts.attempts ?? 1);
      logger.warn({ err: error, export_id: exportId, is_last: isLast }, 'export failed');
      if (error instanceof ExportImpossible) {
        await failExport(this.options, exportId, error.message);
        throw new UnrecoverableError(error.message);
      }
      if (isLast) {
        // The database's own words may name hosts: the log has them.
        await failExport(
          this.options,
          exportId,
          `it failed ${job.attemptsMade + 1} times; the worker's log has the cause`,
        );
      }
      throw error;
    }
  }
}
