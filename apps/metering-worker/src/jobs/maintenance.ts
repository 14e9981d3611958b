import type { Clock } from '@weir/domain';
import {
  changeUsageZone,
  type Database,
  dropExpiredPartitions,
  dropOldRefusals,
  ensurePartitionsAhead,
  zonesToChange,
} from '@weir/persistence';
import type { Logger } from '@weir/platform';
import { Queue, Worker } from 'bullmq';
import { maintenanceQueueName, queueConnection } from './job-queues.js';

const monthsAhead = 3;
const dayMs = 86_400_000;

export type MaintenanceOptions = {
  readonly database: Database;
  readonly redisUrl: string;
  readonly prefix: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly retentionMonths: number;
  readonly refusalDays: number;
  readonly reconcile: () => Promise<number>;
};

/** Name of the job → how often it runs. */
const schedules = {
  partitions: 3_600_000,
  retention: 6 * 3_600_000,
  reconcile: 3_600_000,
} as const;
type JobName = keyof typeof schedules;

/** Jobs that run once per installation, on whichever worker is free. Each may run twice without harm. */
export class Maintenance {
  private readonly queue: Queue;
  private readonly worker: Worker;

  constructor(private readonly options: MaintenanceOptions) {
    const { redisUrl, prefix, logger } = options;
    const connection = queueConnection(redisUrl);
    this.queue = new Queue(maintenanceQueueName, { connection, prefix });
    this.worker = new Worker(maintenanceQueueName, (job) => this.run(job.name as JobName), {
      connection,
      prefix,
      concurrency: 1,
    });
    const onError = (error: Error) => logger.debug({ err: error }, 'job queue connection');
    this.queue.on('error', onError);
    this.worker.on('error', onError);
    this.worker.on('failed', (job, error) => {
      logger.warn({ err: error, job: job?.name }, 'maintenance failed; it runs again on schedule');
    });
  }

  /** Sets the schedules. The same schedules set by another worker are the same. */
  async schedule(): Promise<void> {
    for (const [name, every] of Object.entries(schedules)) {
      await this.queue.upsertJobScheduler(
        name,
        { every },
        { name, opts: { removeOnComplete: 10, removeOnFail: 50 } },
      );
    }
  }

  async close(): Promise<void> {
    await this.worker.close();
    await this.queue.close();
  }

  private async run(name: JobName): Promise<void> {
    const { database, clock, logger, retentionMonths, refusalDays } = this.options;
    const nowMs = clock.now();
    switch (name) {
      case 'partitions':
        await ensurePartitionsAhead(database.pool, nowMs, monthsAhead);
        return;
      case 'retention': {
        const refusals = await dropOldRefusals(database.pool, nowMs - refusalDays * dayMs);
        const partitions =
          retentionMonths === 0
            ? []
            : await dropExpiredPartitions(database.pool, nowMs, retentionMonths);
        logger.info({ refusals, partitions }, 'retention');
        return;
      }
      case 'reconcile': {
        const drifted = await this.options.reconcile();
        if (drifted > 0) logger.error({ scopes: drifted }, 'counters and books differ');
        return;
      }
      default:
        throw new Error(`unknown job: ${String(name)}`);
    }
  }
}

/** Days and months follow the zone that the enterprise's settings name. */
export async function followZones(database: Database, logger: Logger): Promise<void> {
  for (const { enterpriseId, zone } of await zonesToChange(database.pool)) {
    await changeUsageZone(database.pool, enterpriseId, zone);
    logger.info({ enterprise_id: enterpriseId, zone }, 'days and months were cut anew');
  }
}
