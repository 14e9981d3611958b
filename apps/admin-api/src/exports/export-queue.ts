import { Queue } from 'bullmq';
import { WeirError } from '@weir/domain';

/** The worker consumes it: payload `{ exportId }`, job id = export id. The row in Postgres is the truth. */
export const exportQueueName = 'weir-exports';

export type ExportQueue = {
  /** Adding an export twice makes one job. @throws WeirError `unavailable` while Redis is away. */
  add(exportId: string): Promise<void>;
  close(): Promise<void>;
};

const addMs = 2_000;

export function openExportQueue(options: {
  readonly redisUrl: string;
  readonly prefix: string;
  readonly onError: (error: Error) => void;
}): ExportQueue {
  const url = new URL(options.redisUrl);
  const queue = new Queue(exportQueueName, {
    prefix: options.prefix,
    connection: {
      host: url.hostname,
      port: Number(url.port === '' ? 6379 : url.port),
      db: Number(url.pathname.slice(1) || '0'),
      ...(url.username === '' ? {} : { username: decodeURIComponent(url.username) }),
      ...(url.password === '' ? {} : { password: decodeURIComponent(url.password) }),
      ...(url.protocol === 'rediss:' ? { tls: {} } : {}),
      connectTimeout: 1_000,
      commandTimeout: addMs,
      maxRetriesPerRequest: 1,
    },
  });
  queue.on('error', options.onError);
  return {
    add: async (exportId) => {
      let timer: NodeJS.Timeout | undefined;
      const tooLong = new Promise<never>((_resolve, reject) => {
        timer = setTimeout(
          () => reject(new WeirError('unavailable', 'The job queue does not answer.')),
          addMs,
        );
      });
      try {
        const added = queue.add(
          'export',
          { exportId },
          {
            jobId: exportId,
            attempts: 3,
            backoff: { type: 'exponential', delay: 1_000 },
            removeOnComplete: true,
            removeOnFail: true,
          },
        );
        // A late failure of an add that was given up must not become an unhandled rejection.
        added.catch(() => undefined);
        await Promise.race([added, tooLong]);
      } finally {
        clearTimeout(timer);
      }
    },
    close: () => queue.close(),
  };
}
