import { describe, expect, it } from 'vitest';
import { HealthChecks } from './health.js';
import { createLogger } from './logger.js';

function setUp() {
  const lines: Record<string, unknown>[] = [];
  const destination = {
    write: (line: string) => lines.push(JSON.parse(line) as Record<string, unknown>),
  };
  const checks = new HealthChecks(createLogger({ name: 'test', level: 'info', destination }));
  return { checks, lines };
}

describe('HealthChecks', () => {
  it('is ready when every check passes', async () => {
    const { checks } = setUp();
    checks.register('redis', async () => {});
    await expect(checks.readiness()).resolves.toMatchObject({ status: 'ready', reasons: [] });
  });

  it('is degraded, with the reason, when a check says so or one that is not critical fails', async () => {
    const { checks } = setUp();
    checks.register('limits', () => ({ degraded: 'limits are not shared' }));
    checks.register('kafka', () => Promise.reject(new Error('down')), { critical: false });
    await expect(checks.readiness()).resolves.toMatchObject({
      status: 'degraded',
      reasons: ['limits: limits are not shared', 'kafka: failed'],
    });
  });

  it('is not ready when a critical check fails, and keeps the cause for the log', async () => {
    const { checks, lines } = setUp();
    checks.register('limits', () => ({ degraded: 'limits are not shared' }));
    checks.register('postgres', () => {
      throw new Error('password authentication failed for user weir at 10.0.0.7');
    });
    const readiness = await checks.readiness();
    expect(readiness.status).toBe('not_ready');
    expect(JSON.stringify(readiness)).not.toContain('10.0.0.7');
    expect(JSON.stringify(lines)).toContain('10.0.0.7');
  });

  it('does not wait for a check beyond its time', async () => {
    const { checks } = setUp();
    let aborted = false;
    checks.register(
      'stuck',
      (signal) => new Promise(() => signal.addEventListener('abort', () => (aborted = true))),
      {
        timeoutMs: 20,
      },
    );
    const readiness = await checks.readiness();
    expect(readiness).toMatchObject({
      status: 'not_ready',
      reasons: ['stuck: no answer within 20 ms'],
    });
    expect(aborted).toBe(true);
  });

  it('runs the checks once for probes that come at the same time', async () => {
    const { checks } = setUp();
    let runs = 0;
    checks.register('counted', async () => {
      runs += 1;
    });
    await Promise.all([checks.readiness(), checks.readiness(), checks.readiness()]);
    expect(runs).toBe(1);
    await checks.readiness();
    expect(runs).toBe(2);
  });

  it('logs changes, not every probe', async () => {
    const { checks, lines } = setUp();
    let up = false;
    checks.register('redis', () => (up ? Promise.resolve() : Promise.reject(new Error('down'))));
    await checks.readiness();
    await checks.readiness();
    expect(lines).toHaveLength(1);
    up = true;
    await checks.readiness();
    await checks.readiness();
    expect(lines.map((line) => line['msg'])).toEqual([
      'health check changed',
      'health check recovered',
    ]);
  });

  it('refuses a second check under the same name', () => {
    const { checks } = setUp();
    checks.register('redis', () => {});
    expect(() => checks.register('redis', () => {})).toThrow(/already/);
  });
});
