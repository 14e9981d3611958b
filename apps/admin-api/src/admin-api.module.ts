import { Inject, Module, type DynamicModule, type OnModuleInit } from '@nestjs/common';
import { APP_GUARD, APP_INTERCEPTOR } from '@nestjs/core';
import { systemClock, type Clock } from '@weir/domain';
import { HealthChecks, LOGGER, Shutdown, type Logger } from '@weir/platform';
import type { Database } from '@weir/persistence';
import type { PolicyPublisher } from '@weir/quota';
import { AuthController } from './auth/auth.controller.js';
import { Sessions } from './auth/sessions.js';
import { SignIn } from './auth/sign-in.js';
import type { AdminConfig } from './config.js';
import { AuditController } from './control/audit.controller.js';
import { ControlModule } from './control/control.module.js';
import { ExportsController } from './exports/exports.controller.js';
import { openExportQueue } from './exports/export-queue.js';
import { AnswerInterceptor } from './http/answer.interceptor.js';
import { ApiGuard } from './http/api.guard.js';
import { OpenApiController } from './http/openapi.controller.js';
import { CounterRepairController } from './metering/counter-repair.controller.js';
import { ClearingController } from './metering/clearing.controller.js';
import { MeteringController } from './metering/metering.controller.js';
import { ProviderFilesController } from './metering/provider-files.controller.js';
import { LiveCounters } from './organisation/live-counters.js';
import { OrganisationController } from './organisation/organisation.controller.js';
import { ADMIN_CONFIG, DATABASE, EXPORT_QUEUE, POLICY_PUBLISHER } from './tokens.js';
import { KeyUsageController } from './usage/key-usage.controller.js';
import { UsageController } from './usage/usage.controller.js';
import { UsageScope } from './usage/usage-scope.js';

const sweepSessionsEveryMs = 3_600_000;
/** An id that no enterprise has: asking Redis for its version is the cheapest sign of life. */
const noEnterprise = '00000000-0000-0000-0000-000000000000';

/** The admin API as a server. */
@Module({})
export class AdminApiModule implements OnModuleInit {
  constructor(
    @Inject(DATABASE) private readonly database: Database,
    @Inject(POLICY_PUBLISHER) private readonly publisher: Pick<PolicyPublisher, 'version'>,
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly health: HealthChecks,
    private readonly shutdown: Shutdown,
    private readonly sessions: Sessions,
  ) {}

  static forRoot(config: AdminConfig, clock: Clock = systemClock): DynamicModule {
    return {
      module: AdminApiModule,
      imports: [ControlModule.forRoot(config, clock)],
      controllers: [
        AuditController,
        AuthController,
        ExportsController,
        OpenApiController,
        KeyUsageController,
        ClearingController,
        CounterRepairController,
        MeteringController,
        OrganisationController,
        ProviderFilesController,
        UsageController,
      ],
      providers: [
        { provide: ADMIN_CONFIG, useValue: config },
        { provide: APP_GUARD, useClass: ApiGuard },
        { provide: APP_INTERCEPTOR, useClass: AnswerInterceptor },
        {
          provide: EXPORT_QUEUE,
          inject: [LOGGER, Shutdown],
          useFactory: (logger: Logger, shutdown: Shutdown) => {
            const queue = openExportQueue({
              redisUrl: config.REDIS_URL,
              prefix: config.REDIS_PREFIX,
              onError: (error) => logger.debug({ err: error }, 'job queue connection'),
            });
            shutdown.onClose('disconnect', 'job queue', () => queue.close());
            return queue;
          },
        },
        LiveCounters,
        Sessions,
        SignIn,
        UsageScope,
      ],
    };
  }

  onModuleInit(): void {
    this.health.register('postgres', async () => {
      await this.database.prisma.$queryRaw`SELECT 1`;
    });
    // Without Redis changes are stored and published later, and there are no live figures: worse, but it serves.
    this.health.register(
      'redis',
      async () => {
        await this.publisher.version(noEnterprise);
      },
      { critical: false },
    );
    const timer = setInterval(() => {
      this.sessions.sweep().catch((error: unknown) => {
        this.logger.warn({ err: error }, 'expired sessions could not be deleted');
      });
    }, sweepSessionsEveryMs);
    this.shutdown.onClose('stop-intake', 'session sweep', () => clearInterval(timer));
  }
}
