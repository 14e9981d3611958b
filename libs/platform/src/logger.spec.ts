import { describe, expect, it } from 'vitest';
import { createLogger, NestLogger, type LogLevel } from './logger.js';

function capture(level: LogLevel = 'trace') {
  const lines: string[] = [];
  const logger = createLogger({
    name: 'test',
    level,
    destination: { write: (line) => lines.push(line) },
  });
  return { logger, lines, last: () => JSON.parse(lines.at(-1) ?? '{}') as Record<string, unknown> };
}

describe('createLogger', () => {
  it('writes one JSON object per line with name, level and time', () => {
    const { logger, last, lines } = capture();
    logger.info({ calls: 3 }, 'counted');
    expect(last()).toMatchObject({ name: 'test', level: 'info', calls: 3, msg: 'counted' });
    expect(Date.parse(String(last()['time']))).not.toBeNaN();
    expect(lines).toHaveLength(1);
  });

  it('hides secrets at the top and inside nested objects', () => {
    const { logger, lines } = capture();
    const secrets = {
      authorization: 'sesame',
      'x-api-key': 'sesame',
      cookie: 'sesame',
      password: 'sesame',
      secret: 'sesame',
    };
    logger.info({ ...secrets, req: { headers: secrets, body: { user: secrets } } }, 'request');
    expect(lines[0]).not.toContain('sesame');
    expect(lines[0]?.split('[redacted]')).toHaveLength(16);
  });
});

describe('NestLogger', () => {
  it('keeps the start-up chatter of Nest at debug', () => {
    const { logger, lines } = capture('info');
    const nest = new NestLogger(logger);
    nest.log('Mapped {/x, GET} route', 'RouterExplorer');
    expect(lines).toHaveLength(0);
    nest.log('export finished', 'ExportsService');
    expect(lines).toHaveLength(1);
  });

  it('logs an error with its stack and context', () => {
    const { logger, last } = capture();
    new NestLogger(logger).error('it broke', 'Error: it broke\n  at x', 'Exports');
    expect(last()).toMatchObject({ level: 'error', msg: 'it broke', context: 'Exports' });
    expect(last()['stack']).toContain('at x');
    new NestLogger(logger).error(new Error('boom'));
    expect(last()).toMatchObject({ msg: 'boom', err: { message: 'boom' } });
  });
});
