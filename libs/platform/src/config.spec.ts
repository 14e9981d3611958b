import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ConfigError, loadConfig, serverConfigShape } from './config.js';

const schema = z.object({
  ...serverConfigShape,
  DATABASE_URL: z.string().describe('postgres://user:password@host/name'),
  POOL_SIZE: z.coerce.number('must be a whole number').int().min(1, 'must be at least 1'),
  SECRET_KEY: z.string().refine((text) => text.startsWith('k-'), {
    error: (issue) => `"${String(issue.input)}" must start with k-`,
  }),
});
const valid = { DATABASE_URL: 'postgres://x', POOL_SIZE: '4', SECRET_KEY: 'k-1234567' };

describe('loadConfig', () => {
  it('reads typed settings and fills defaults', () => {
    const config = loadConfig(schema, { ...valid, PORT: '8080', TRUST_PROXY: '1' });
    expect(config).toMatchObject({
      PORT: 8080,
      POOL_SIZE: 4,
      TRUST_PROXY: 1,
      LOG_LEVEL: 'info',
    });
  });

  it('takes an empty variable for an unset one', () => {
    expect(loadConfig(schema, { ...valid, PORT: '' }).PORT).toBe(0);
    expect(() => loadConfig(schema, { ...valid, DATABASE_URL: '' })).toThrow(
      /DATABASE_URL: is required/,
    );
  });

  it('lists every fault at once by variable name, with the remedy', () => {
    const fault = faultOf({ PORT: 'eighty', POOL_SIZE: '0', LOG_LEVEL: 'loud' });
    expect(fault.faults).toEqual([
      { variable: 'PORT', remedy: 'must be a port from 0 to 65535' },
      { variable: 'LOG_LEVEL', remedy: expect.stringContaining('expected one of') },
      {
        variable: 'DATABASE_URL',
        remedy: 'is required: set it (postgres://user:password@host/name)',
      },
      { variable: 'POOL_SIZE', remedy: 'must be at least 1' },
      { variable: 'SECRET_KEY', remedy: 'is required: set it' },
    ]);
    for (const { variable } of fault.faults) expect(fault.message).toContain(`  ${variable}: `);
  });

  it('never shows a value, not even when the schema quotes it', () => {
    const fault = faultOf({ ...valid, SECRET_KEY: 'hunter2-hunter2' });
    expect(fault.message).not.toContain('hunter2');
    expect(fault.faults).toEqual([{ variable: 'SECRET_KEY', remedy: '"***" must start with k-' }]);
  });
});

function faultOf(env: NodeJS.ProcessEnv): ConfigError {
  try {
    loadConfig(schema, env);
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error('the configuration was accepted');
}
