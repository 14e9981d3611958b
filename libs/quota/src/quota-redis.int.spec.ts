import { afterEach, describe, expect, it } from 'vitest';
import { connectQuotaRedis, type QuotaRedis } from './quota-redis.js';
import { requiredUrl } from './testbed/quota-testbed.js';
import { newId } from '@weir/domain';

const commandTimeoutMs = 40;

describe('waiting for Redis', () => {
  let redis: QuotaRedis | null = null;
  afterEach(() => redis?.close());

  it('takes a reply although this process was too busy to read it in time', async () => {
    redis = connectQuotaRedis({
      url: requiredUrl('WEIR_TEST_REDIS_URL', process.env.WEIR_TEST_REDIS_URL),
      prefix: `t${newId().replaceAll('-', '')}`,
      shardCount: 1,
      commandTimeoutMs,
    });
    await redis.ready();
    const fence = redis.fence(0);
    const until = performance.now() + commandTimeoutMs * 3;
    while (performance.now() < until);
    expect(await fence).toMatchObject({ epoch: '' });
  });
});
