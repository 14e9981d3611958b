import type { LoggerService } from '@nestjs/common';
import { pino, stdTimeFunctions, type DestinationStream, type Logger as PinoLogger } from 'pino';

export type Logger = PinoLogger;
export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';

const secretKeys = [
  'authorization',
  'Authorization',
  'x-api-key',
  'api_key',
  'apiKey',
  'cookie',
  'set-cookie',
  'password',
  'secret',
];

/** Pino's wildcards stand for one level each: secrets are hidden at the top and up to three levels down. */
const redactedPaths = secretKeys.flatMap((key) => {
  const quoted = `["${key}"]`;
  return [quoted, `*${quoted}`, `*.*${quoted}`, `*.*.*${quoted}`];
});

/**
 * One JSON object per line on stdout, written synchronously so that a crash loses no line. Values of secret-bearing
 * keys (authorization, x-api-key, cookie, password, secret ...) are replaced by `[redacted]`.
 */
export function createLogger(options: {
  name: string;
  level: LogLevel;
  /** Where the lines go instead of stdout. */
  destination?: DestinationStream;
}): Logger {
  const settings = {
    name: options.name,
    level: options.level,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: redactedPaths, censor: '[redacted]' },
  };
  return options.destination === undefined ? pino(settings) : pino(settings, options.destination);
}

/** What Nest itself says while it starts: one line per route and module is for debugging alone. */
const chattyContexts = new Set([
  'NestFactory',
  'NestApplication',
  'InstanceLoader',
  'RoutesResolver',
  'RouterExplorer',
]);

/** Lets Nest and its modules log through pino. Nest passes its context as the last parameter. */
export class NestLogger implements LoggerService {
  constructor(private readonly logger: Logger) {}

  log(message: unknown, ...rest: unknown[]): void {
    const context = rest.at(-1);
    const isChatty = typeof context === 'string' && chattyContexts.has(context);
    this.write(isChatty ? 'debug' : 'info', message, rest);
  }
  error(message: unknown, ...rest: unknown[]): void {
    this.write('error', message, rest);
  }
  warn(message: unknown, ...rest: unknown[]): void {
    this.write('warn', message, rest);
  }
  debug(message: unknown, ...rest: unknown[]): void {
    this.write('debug', message, rest);
  }
  verbose(message: unknown, ...rest: unknown[]): void {
    this.write('trace', message, rest);
  }
  fatal(message: unknown, ...rest: unknown[]): void {
    this.write('fatal', message, rest);
  }

  private write(level: LogLevel & keyof Logger, message: unknown, rest: unknown[]): void {
    const texts = rest.filter((value): value is string => typeof value === 'string');
    const fields: Record<string, unknown> = {};
    const context = texts.pop();
    if (context !== undefined) fields['context'] = context;
    if (texts.length > 0) fields['stack'] = texts.join('\n');
    if (message instanceof Error) fields['err'] = message;
    const text = message instanceof Error ? message.message : asText(message);
    (this.logger[level] as (fields: object, text: string) => void).call(this.logger, fields, text);
  }
}

function asText(message: unknown): string {
  return typeof message === 'string' ? message : (JSON.stringify(message) ?? String(message));
}
