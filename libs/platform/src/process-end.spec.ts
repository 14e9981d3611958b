import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import { createLogger } from './logger.js';
import { endWithProcess } from './process-end.js';

function setUp(close: () => Promise<void>, boundMs = 60_000) {
  const lines: Record<string, unknown>[] = [];
  const destination = {
    write: (line: string) => lines.push(JSON.parse(line) as Record<string, unknown>),
  };
  const host = Object.assign(new EventEmitter(), { exit: (_code: number): void => {} });
  const exited = new Promise<number>((resolve) => (host.exit = resolve));
  endWithProcess(
    { logger: createLogger({ name: 'test', level: 'info', destination }), boundMs, close },
    host,
  );
  return { host, lines, exited };
}

describe('endWithProcess', () => {
  it('ends with 0 once a signal has closed the app', async () => {
    let closes = 0;
    const { host, exited } = setUp(async () => void (closes += 1));
    host.emit('SIGTERM');
    expect(await exited).toBe(0);
    expect(closes).toBe(1);
  });

  it('ends with 1 when closing takes longer than its bound', async () => {
    const { host, exited, lines } = setUp(() => new Promise(() => {}), 20);
    host.emit('SIGTERM');
    expect(await exited).toBe(1);
    expect(lines.at(-1)).toMatchObject({ level: 'error', bound_ms: 20 });
  });

  it('ends with 1 when closing fails, and logs why', async () => {
    const { host, exited, lines } = setUp(() => Promise.reject(new Error('the pool is stuck')));
    host.emit('SIGINT');
    expect(await exited).toBe(1);
    expect(lines.at(-1)).toMatchObject({ level: 'error', err: { message: 'the pool is stuck' } });
  });

  it('lets a fault during the shutdown change the exit code, not cut the closing short', async () => {
    let finish = (): void => {};
    const closing = new Promise<void>((resolve) => (finish = resolve));
    const { host, exited, lines } = setUp(() => closing);
    host.emit('SIGTERM');
    host.emit('unhandledRejection', new Error('late'));
    expect(lines.at(-1)).toMatchObject({ level: 'fatal' });
    finish();
    expect(await exited).toBe(1);
    expect(lines.at(-1)).toMatchObject({ msg: 'closed' });
  });
});
