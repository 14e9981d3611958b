import {
  Global,
  Inject,
  Module,
  type BeforeApplicationShutdown,
  type DynamicModule,
  type OnApplicationShutdown,
  type OnModuleDestroy,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Server } from 'node:http';
import { HealthChecks, HealthController } from './health.js';
import type { Logger } from './logger.js';
import { Metrics } from './metrics.js';
import { Shutdown } from './shutdown.js';
import { LOGGER, METRICS_TOKEN } from './tokens.js';

const GRACE_MS = Symbol('weir.shutdown-grace-ms');

export type PlatformOptions = {
  name: string;
  logger: Logger;
  shutdownGraceMs: number;
  metricsToken: string | null;
};

/**
 * Gives every module of the app `HealthChecks`, `Metrics`, `Shutdown` and the logger, and ties the phases of the
 * shutdown to Nest's hooks, so that `app.close()` in a test does the same as SIGTERM in production.
 */
@Global()
@Module({})
export class PlatformModule
  implements OnModuleDestroy, BeforeApplicationShutdown, OnApplicationShutdown
{
  private idleCloser: NodeJS.Timeout | undefined;
  private cutter: NodeJS.Timeout | undefined;

  constructor(
    @Inject(Shutdown) private readonly shutdown: Shutdown,
    @Inject(HealthChecks) private readonly health: HealthChecks,
    @Inject(HttpAdapterHost) private readonly host: HttpAdapterHost,
    @Inject(LOGGER) private readonly logger: Logger,
    @Inject(GRACE_MS) private readonly graceMs: number,
  ) {}

  static forRoot(options: PlatformOptions): DynamicModule {
    const health = new HealthChecks(options.logger);
    return {
      module: PlatformModule,
      controllers: [HealthController],
      providers: [
        { provide: LOGGER, useValue: options.logger },
        { provide: METRICS_TOKEN, useValue: options.metricsToken },
        { provide: GRACE_MS, useValue: options.shutdownGraceMs },
        { provide: HealthChecks, useValue: health },
        { provide: Metrics, useValue: new Metrics(options.name) },
        { provide: Shutdown, useValue: new Shutdown(options.logger) },
      ],
      exports: [LOGGER, HealthChecks, Metrics, Shutdown],
    };
  }

  async onModuleDestroy(): Promise<void> {
    this.health.startDraining();
    this.shutdown.begin();
    await this.shutdown.runPhase('stop-intake');
  }

  /** Nest closes the HTTP server next and waits for the requests in flight: bound that wait. */
  beforeApplicationShutdown(): void {
    const server = this.host.httpAdapter.getHttpServer() as Server;
    // Node closes idle connections once; those that become idle later would wait for their keep-alive to end.
    this.idleCloser = setInterval(() => server.closeIdleConnections(), 100);
    this.cutter = setTimeout(() => {
      this.logger.warn(
        { grace_ms: this.graceMs },
        'requests still in flight after the grace time are cut',
      );
      server.closeAllConnections();
    }, this.graceMs);
  }

  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.idleCloser);
    clearTimeout(this.cutter);
    await this.shutdown.runPhase('drain');
    await this.shutdown.runPhase('disconnect');
  }
}
