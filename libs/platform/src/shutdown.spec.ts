import { describe, expect, it } from 'vitest';
import { createLogger } from './logger.js';
import { Shutdown } from './shutdown.js';

function setUp(stepTimeoutMs?: number) {
  const lines: Record<string, unknown>[] = [];
  const destination = {
    write: (line: string) => lines.push(JSON.parse(line) as Record<string, unknown>),
  };
  const logger = createLogger({ name: 'test', level: 'info', destination });
  return { shutdown: new Shutdown(logger, stepTimeoutMs), lines };
}

describe('Shutdown', () => {
  it('closes within a phase in reverse order of registration, one after another', async () => {
    const { shutdown } = setUp();
    const closed: string[] = [];
    shutdown.onClose('disconnect', 'pool', () => void closed.push('pool'));
    shutdown.onClose('disconnect', 'user of the pool', async () => {
      await Promise.resolve();
      closed.push('user of the pool');
    });
    shutdown.onClose('drain', 'buffer', () => void closed.push('buffer'));
    await shutdown.runPhase('drain');
    await shutdown.runPhase('disconnect');
    expect(closed).toEqual(['buffer', 'user of the pool', 'pool']);
  });

  it('goes on when a step throws or hangs, and logs which', async () => {
    const { shutdown, lines } = setUp(20);
    const closed: string[] = [];
    shutdown.onClose('drain', 'last', () => void closed.push('last'));
    shutdown.onClose('drain', 'hangs', () => new Promise(() => {}));
    shutdown.onClose('drain', 'throws', () => {
      throw new Error('no');
    });
    await shutdown.runPhase('drain');
    expect(closed).toEqual(['last']);
    expect(lines.map((line) => line['step'])).toEqual(['throws', 'hangs']);
  });

  it('runs no step twice', async () => {
    const { shutdown } = setUp();
    let runs = 0;
    shutdown.onClose('drain', 'once', () => void (runs += 1));
    await shutdown.runPhase('drain');
    await shutdown.runPhase('drain');
    expect(runs).toBe(1);
  });

  it('tells loops that the end has begun', () => {
    const { shutdown } = setUp();
    expect(shutdown.signal.aborted).toBe(false);
    shutdown.begin();
    shutdown.begin();
    expect(shutdown.signal.aborted).toBe(true);
  });
});
