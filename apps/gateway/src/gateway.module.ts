import { join } from 'node:path';
import { Module, type DynamicModule } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import {
  newId,
  refusalStreamKey,
  systemClock,
  type Clock,
  type EnterpriseSettings,
} from '@weir/domain';
import { HealthChecks, LOGGER, Metrics, SecretBox, Shutdown, type Logger } from '@weir/platform';
import {
  connectQuotaRedis,
  createRedisEngine,
  createResilientEngine,
  EventSpool,
  LocalAdmissions,
  PolicyStore,
  type QuotaRedis,
} from '@weir/quota';
import { createTokenCounter } from '@weir/tokens';
import type { FastifyInstance } from 'fastify';
import { LRUCache } from 'lru-cache';
import { Admission } from './admission/admission.js';
import { BudgetOutlook } from './admission/budget-outlook.js';
import { DenyCache } from './admission/deny-cache.js';
import { LiveGateways } from './admission/live-gateways.js';
import type { GatewayConfig } from './config.js';
import { ApiKeyGuard } from './controllers/api-key.guard.js';
import { CountTokensController } from './controllers/count-tokens.controller.js';
import { ModelsController } from './controllers/models.controller.js';
import { QuotaController } from './controllers/quota.controller.js';
import { UsageController } from './controllers/usage.controller.js';
import { IdempotencyStore } from './idempotency/idempotency-store.js';
import { CLOCK, GATEWAY_CONFIG, QUOTA_ENGINE, TOKEN_COUNTER } from './injection-tokens.js';
import { MeteredCalls } from './metered/metered-calls.js';
import { registerMeteredRoutes } from './metered/metered-routes.plugin.js';
import { GatewayMetrics } from './observe/gateway-metrics.js';
import { RefusalLog, type RefusalSink } from './observe/refusal-log.js';
import { meteredRoutes } from './routes/index.js';
import { LeaseKeeper } from './settlement/lease-keeper.js';
import { Settler } from './settlement/settler.js';
import { AdaptiveLimits } from './upstream/adaptive-limits.js';
import { UpstreamClient } from './upstream/upstream-client.js';
import { WaitingRoom } from './waiting/waiting-room.js';

/** Refusals kept per shard, about; older ones go. */
const refusalsKept = 100_000;
const enterprisesMax = 10_000;

/** Wires the gateway's parts by hand, in one place: who holds what, and in which order they close. */
@Module({})
export class GatewayModule {
  static forRoot(config: GatewayConfig, clock: Clock = systemClock): DynamicModule {
    return {
      module: GatewayModule,
      controllers: [CountTokensController, ModelsController, QuotaController, UsageController],
      providers: [
        { provide: GATEWAY_CONFIG, useValue: config },
        { provide: CLOCK, useValue: clock },
        ApiKeyGuard,
        {
          provide: PARTS,
          useFactory: startParts,
          inject: [GATEWAY_CONFIG, CLOCK, LOGGER, Metrics, HealthChecks, Shutdown],
        },
        {
          provide: QUOTA_ENGINE,
          useFactory: (parts: Parts) => parts.engine,
          inject: [PARTS],
        },
        {
          provide: TOKEN_COUNTER,
          useFactory: (parts: Parts) => parts.counter,
          inject: [PARTS],
        },
        {
          provide: PolicyStore,
          useFactory: (parts: Parts) => parts.policies,
          inject: [PARTS],
        },
        {
          provide: MeteredCalls,
          useFactory: (parts: Parts, host: HttpAdapterHost) => {
            const fastify = host.httpAdapter.getInstance<FastifyInstance>();
            registerMeteredRoutes(fastify, meteredRoutes, parts.calls);
            return parts.calls;
          },
          inject: [PARTS, HttpAdapterHost],
        },
      ],
    };
  }
}

const PARTS = Symbol('weir.gateway.parts');
type Parts = Awaited<ReturnType<typeof startParts>>;

async function startParts(
  config: GatewayConfig,
  clock: Clock,
  logger: Logger,
  platformMetrics: Metrics,
  health: HealthChecks,
  shutdown: Shutdown,
) {
  const redis = connectQuotaRedis({
    url: config.REDIS_URL,
    prefix: config.REDIS_PREFIX,
    shardCount: config.SHARD_COUNT,
    commandTimeoutMs: config.REDIS_COMMAND_TIMEOUT_MS,
    cluster: config.REDIS_CLUSTER,
    clock,
    logger,
  });
  const policies = new PolicyStore(redis);
  await policies.start();
  const gatewayId = newId();
  const gateways = new LiveGateways(redis, gatewayId, logger);
  gateways.start();
  // Of its own for each gateway on a machine; after a restart on the same port what was left there is booked.
  const spoolName = config.PORT === 0 ? `gateway-${gatewayId}` : `gateway-${config.PORT}`;
  const spoolDir = join(config.SPOOL_DIR, spoolName);
  const spool = await EventSpool.open({ directory: spoolDir });
  const admissions = await LocalAdmissions.load(
    await EventSpool.open({ directory: join(spoolDir, 'admissions') }),
  );
  const settings = new LRUCache<string, EnterpriseSettings>({ max: enterprisesMax });
  const engine = createResilientEngine({
    redis,
    engine: createRedisEngine(redis),
    settingsOf: (enterpriseId) => settings.get(enterpriseId),
    liveGateways: () => gateways.count,
    spool,
    admissions,
  });
  const counter = createTokenCounter({
    onFailure: (error) => logger.warn({ err: error }, 'a token counting thread failed'),
  });
  await counter.warmUp();
  const metrics = new GatewayMetrics(platformMetrics.registry);
  const refusals = new RefusalLog(refusalSink(redis), metrics, logger, clock);
  const keeper = new LeaseKeeper(engine, logger);
  const waiting = new WaitingRoom(Math.floor(config.CALLS_IN_FLIGHT_MAX / 2), {
    afterMs: config.WAIT_NOTICE_AFTER_MS,
    everyMs: config.WAIT_NOTICE_EVERY_MS,
  });
  const settler = new Settler(engine, keeper, metrics, logger, (enterpriseId) =>
    waiting.freed(enterpriseId),
  );
  const upstreams = new UpstreamClient({
    allowPrivate: config.UPSTREAM_ALLOW_PRIVATE,
    connectionsMax: config.UPSTREAM_CONNECTIONS_MAX,
    secretBox: SecretBox.fromSetting(config.WEIR_SECRET_KEY),
  });
  const denials = new DenyCache();
  const adaptive = new AdaptiveLimits(config.ADAPTIVE_CONCURRENCY);
  const admission = new Admission(
    engine,
    policies,
    new BudgetOutlook(engine),
    denials,
    adaptive,
    clock,
    logger,
    Math.random,
  );
  const calls = new MeteredCalls({
    config,
    logger,
    clock,
    engine,
    policies,
    counter,
    admission,
    waiting,
    adaptive,
    upstreams,
    settler,
    keeper,
    refusals,
    metrics,
    noteCaller: ({ enterprise }) => settings.set(enterprise.id, enterprise.settings),
    idempotency: new IdempotencyStore(redis, logger),
  });
  metrics.gauges(platformMetrics.registry, {
    inFlight: () => calls.inFlight,
    waiting: () => waiting.size,
    leases: () => keeper.size,
    unsettled: () => settler.pending,
    drains: () => calls.drains.size,
    localDenials: () => denials.hits,
    gateways: () => gateways.count,
    exposure: () => engine.exposure(),
  });
  keeper.start();
  health.register(
    'limits',
    () => (engine.degraded ? { degraded: 'limits are not shared' } : undefined),
    {
      critical: false,
    },
  );
  health.register('redis', async () => void (await redis.client.ping()), { critical: false });
  // Steps of a phase run in reverse order of registration.
  shutdown.onClose('stop-intake', 'waiting calls', () => waiting.close());
  shutdown.onClose('drain', 'refusals', () => refusals.flush());
  shutdown.onClose('drain', 'settlements', () => settler.flush());
  shutdown.onClose('drain', 'calls', () => calls.stop());
  shutdown.onClose('disconnect', 'redis', () => redis.close());
  shutdown.onClose('disconnect', 'spool', async () => {
    await spool.close();
    await admissions.close();
  });
  shutdown.onClose('disconnect', 'engine', () => engine.close());
  shutdown.onClose('disconnect', 'sign-off', () => gateways.stop());
  shutdown.onClose('disconnect', 'policies', () => policies.stop());
  shutdown.onClose('disconnect', 'leases', () => keeper.stop());
  shutdown.onClose('disconnect', 'upstreams', () => upstreams.close());
  shutdown.onClose('disconnect', 'token counter', () => counter.close());
  return { engine, policies, counter, calls };
}

function refusalSink(redis: QuotaRedis): RefusalSink {
  return async (shard, events) => {
    const key = refusalStreamKey(redis.prefix, shard);
    const written = events.map((event) =>
      redis.client.xadd(key, 'MAXLEN', '~', refusalsKept, '*', 'event', event),
    );
    await Promise.all(written);
  };
}
