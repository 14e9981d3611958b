/** What this lib says. Pino's loggers fit. */
export type MeteringLogger = {
  debug(details: object, message: string): void;
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
};
