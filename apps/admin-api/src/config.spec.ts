import { ConfigError, loadConfig } from '@weir/platform';
import { describe, expect, it } from 'vitest';
import { adminConfigSchema } from './config.js';

const good = {
  DATABASE_URL: 'postgresql://weir:pw@127.0.0.1:5432/weir',
  WEIR_SECRET_KEY: Buffer.alloc(32).toString('base64'),
};

describe('the settings of the admin API', () => {
  it('need a database and a key, and have defaults for the rest', () => {
    expect(loadConfig(adminConfigSchema, good)).toMatchObject({
      REDIS_PREFIX: 'weir',
      SHARD_COUNT: 8,
      SESSION_TTL: 43_200,
      UPSTREAM_ALLOW_PRIVATE: false,
    });
  });

  it('list every fault by name at once, and no value', () => {
    const bad = {
      DATABASE_URL: 'mysql://user:hunter22@host/db',
      WEIR_SECRET_KEY: 'c2hvcnQtc2VjcmV0',
      SHARD_COUNT: '0',
      REDIS_PREFIX: 'a{b}',
      SESSION_TTL: 'soon',
    };
    try {
      loadConfig(adminConfigSchema, bad);
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(ConfigError);
      const { faults, message } = error as ConfigError;
      expect(faults.map(({ variable }) => variable).sort()).toEqual(Object.keys(bad).sort());
      expect(message).not.toContain('hunter22');
      expect(message).not.toContain('c2hvcnQtc2VjcmV0');
    }
  });
});
