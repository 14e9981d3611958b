import { createHash } from 'node:crypto';
import { newId } from '@weir/domain';
import { afterEach, describe, expect, it } from 'vitest';
import { connectQuotaRedis, type QuotaRedis } from './quota-redis.js';
import { shippedScripts } from './script-sources.js';
import { requiredUrl } from './testbed/quota-testbed.js';

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

describe('a new connection', () => {
  let redis: QuotaRedis | null = null;
  afterEach(() => redis?.close());

  it('has its scripts there before the first call', async () => {
    // Scripts that no other test has loaded.
    const scripts = Object.fromEntries(
      Object.entries(shippedScripts).map(([name, source]) => [name, `${source}\n-- ${newId()}`]),
    ) as typeof shippedScripts;
    redis = connectQuotaRedis({
      url: requiredUrl('WEIR_TEST_REDIS_URL', process.env.WEIR_TEST_REDIS_URL),
      shardCount: 1,
      scripts,
    });
    await redis.ready();
    const shas = Object.values(scripts).map((source) =>
      createHash('sha1').update(source).digest('hex'),
    );
    expect(await redis.client.script('EXISTS', ...shas)).toEqual(shas.map(() => 1));
  });
});
