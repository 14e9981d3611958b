import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { requireService } from './services.js';

export type TestRedis = {
  readonly url: string;
  /** No other suite uses keys that begin with it. */
  readonly prefix: string;
  readonly client: Redis;
  /** Removes the suite's keys and disconnects. */
  close(): Promise<void>;
};

/** A key prefix of its own on the server that WEIR_TEST_REDIS_URL leads to. */
export function openTestRedis(): TestRedis {
  const url = requireService('WEIR_TEST_REDIS_URL');
  const prefix = `t${randomUUID().slice(0, 8)}`;
  const client = new Redis(url, { maxRetriesPerRequest: 3 });
  return {
    url,
    prefix,
    client,
    close: async () => {
      for await (const keys of client.scanStream({ match: `${prefix}*`, count: 1_000 })) {
        if ((keys as string[]).length > 0) await client.unlink(keys as string[]);
      }
      client.disconnect();
    },
  };
}
