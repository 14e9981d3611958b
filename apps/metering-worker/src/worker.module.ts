import { type DynamicModule, Module } from '@nestjs/common';
import { HealthChecks, LOGGER, type Logger, Metrics, Shutdown } from '@weir/platform';
import type { WorkerConfig } from './config.js';
import { startWorker } from './worker.js';

const WORKER = Symbol('weir.worker');

/** The worker as a Nest app: health, metrics and an orderly end around the roles. */
@Module({})
export class WorkerModule {
  static forRoot(config: WorkerConfig): DynamicModule {
    return {
      module: WorkerModule,
      providers: [
        {
          provide: WORKER,
          inject: [LOGGER, Metrics, HealthChecks, Shutdown],
          useFactory: (
            logger: Logger,
            metrics: Metrics,
            health: HealthChecks,
            shutdown: Shutdown,
          ) =>
            startWorker(config, {
              logger,
              metrics,
              health,
              shutdown,
              // Outside of any promise, where the platform logs it, closes what is open and ends with exit code 1.
              onFatal: (error) =>
                void setImmediate(() => {
                  throw error;
                }),
            }),
        },
      ],
    };
  }
}
