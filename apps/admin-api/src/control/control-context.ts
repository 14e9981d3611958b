import 'reflect-metadata';
import { Module, type DynamicModule, type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { createLogger, LOGGER, Shutdown } from '@weir/platform';
import type { ControlConfig } from '../config.js';
import { ControlModule } from './control.module.js';

@Module({})
class CommandModule {}

/**
 * Runs `work` with the control plane's services and without a server, for commands. Logs go to stderr, so that stdout
 * is the command's own.
 */
export async function withControlContext<Result>(
  name: string,
  config: ControlConfig,
  work: (context: INestApplicationContext) => Promise<Result>,
): Promise<Result> {
  const logger = createLogger({ name, level: 'warn', destination: process.stderr });
  const shutdown = new Shutdown(logger);
  const root: DynamicModule = {
    module: CommandModule,
    global: true,
    imports: [ControlModule.forRoot(config)],
    providers: [
      { provide: LOGGER, useValue: logger },
      { provide: Shutdown, useValue: shutdown },
    ],
    exports: [LOGGER, Shutdown],
  };
  const context = await NestFactory.createApplicationContext(root, {
    logger: false,
    abortOnError: false,
  });
  try {
    return await work(context);
  } finally {
    shutdown.begin();
    for (const phase of ['stop-intake', 'drain', 'disconnect'] as const) {
      await shutdown.runPhase(phase);
    }
    await context.close();
  }
}
