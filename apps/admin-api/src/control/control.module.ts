import { Inject, Module, type DynamicModule } from '@nestjs/common';
import { systemClock, type Clock } from '@weir/domain';
import { openDatabase } from '@weir/persistence';
import { LOGGER, SecretBox, Shutdown, type Logger } from '@weir/platform';
import {
  connectQuotaRedis,
  createRedisEngine,
  PolicyPublisher,
  type QuotaRedis,
} from '@weir/quota';
import type { ControlConfig } from '../config.js';
import { ModelsController } from '../models/models.controller.js';
import { resolveHost } from '../models/upstream-address.js';
import { UpstreamsController } from '../models/upstreams.controller.js';
import {
  CLOCK,
  CONTROL_CONFIG,
  DATABASE,
  LIVE_ENGINE,
  LIVE_REDIS,
  POLICY_PUBLISHER,
  RESOLVE_HOST,
  SECRET_BOX,
} from '../tokens.js';
import { Changes } from './changes.js';
import { DepartmentsController } from './departments.controller.js';
import { EnterpriseController } from './enterprise.controller.js';
import { EnterpriseSetup } from './enterprise-setup.js';
import { KeysController } from './keys.controller.js';
import { LimitsController } from './limits.controller.js';
import { PolicyPublication } from './policy-publication.js';
import { UsersController } from './users.controller.js';

const PUBLISH_REDIS = Symbol('weir.publish-redis');

/** All that changes the control plane; runs in the server and, without one, in the demo set-up. */
@Module({})
export class ControlModule {
  constructor(@Inject(CONTROL_CONFIG) readonly config: ControlConfig) {}

  static forRoot(config: ControlConfig, clock: Clock = systemClock): DynamicModule {
    /** Two connections, because a large publish must not make live figures wait, and may take longer than they may. */
    const redis = (timeoutMs: number) => ({
      inject: [LOGGER, Shutdown],
      useFactory: async (logger: Logger, shutdown: Shutdown): Promise<QuotaRedis> => {
        const connection = connectQuotaRedis({
          url: config.REDIS_URL,
          prefix: config.REDIS_PREFIX,
          shardCount: config.SHARD_COUNT,
          cluster: config.REDIS_CLUSTER,
          commandTimeoutMs: timeoutMs,
          logger,
        });
        shutdown.onClose('disconnect', 'redis', () => connection.close());
        // So that the first change finds the connection there. Without Redis we start all the same, degraded.
        await connection.ready(config.PUBLISH_TIMEOUT_MS).catch((error: unknown) => {
          logger.warn({ err: error }, 'starting without Redis');
        });
        return connection;
      },
    });
    return {
      module: ControlModule,
      global: true,
      controllers: [
        DepartmentsController,
        EnterpriseController,
        KeysController,
        LimitsController,
        ModelsController,
        UpstreamsController,
        UsersController,
      ],
      providers: [
        { provide: CONTROL_CONFIG, useValue: config },
        { provide: CLOCK, useValue: clock },
        { provide: RESOLVE_HOST, useValue: resolveHost },
        { provide: SECRET_BOX, useValue: SecretBox.fromSetting(config.WEIR_SECRET_KEY) },
        {
          provide: DATABASE,
          inject: [LOGGER, Shutdown],
          useFactory: (logger: Logger, shutdown: Shutdown) => {
            const database = openDatabase({
              url: config.DATABASE_URL,
              poolMax: config.DATABASE_POOL_MAX,
              applicationName: 'weir-admin-api',
              onConnectionError: (error) => logger.warn({ err: error }, 'database connection lost'),
            });
            shutdown.onClose('disconnect', 'database', () => database.close());
            return database;
          },
        },
        { provide: LIVE_REDIS, ...redis(config.LIVE_TIMEOUT_MS) },
        { provide: PUBLISH_REDIS, ...redis(config.PUBLISH_TIMEOUT_MS) },
        { provide: LIVE_ENGINE, inject: [LIVE_REDIS], useFactory: createRedisEngine },
        {
          provide: POLICY_PUBLISHER,
          inject: [PUBLISH_REDIS],
          useFactory: (connection: QuotaRedis) => new PolicyPublisher(connection),
        },
        Changes,
        EnterpriseSetup,
        PolicyPublication,
      ],
      exports: [
        CLOCK,
        CONTROL_CONFIG,
        DATABASE,
        LIVE_ENGINE,
        LIVE_REDIS,
        POLICY_PUBLISHER,
        Changes,
        PolicyPublication,
      ],
    };
  }
}
