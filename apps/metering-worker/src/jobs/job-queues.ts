import type { ConnectionOptions } from 'bullmq';

/** The admin API adds to it: payload `{ exportId }`, job id = export id. */
export const exportQueueName = 'weir-exports';
/** What must run once per installation, whatever the number of workers. */
export const maintenanceQueueName = 'weir-maintenance';

/** How BullMQ connects; it wants to wait for Redis rather than to fail. */
export function queueConnection(redisUrl: string): ConnectionOptions {
  const url = new URL(redisUrl);
  return {
    host: url.hostname,
    port: Number(url.port === '' ? 6379 : url.port),
    db: Number(url.pathname.slice(1) || '0'),
    ...(url.username === '' ? {} : { username: decodeURIComponent(url.username) }),
    ...(url.password === '' ? {} : { password: decodeURIComponent(url.password) }),
    ...(url.protocol === 'rediss:' ? { tls: {} } : {}),
    maxRetriesPerRequest: null,
    retryStrategy: (attempt: number) => Math.min(attempt * 100, 2_000),
  };
}
