// The gateway with its quotas off: the same server, key lookup, parser, model routing, connection pools, relays
// and metrics, all of them the gateway's own code, but nothing is counted, reserved, settled or booked. What the
// full path costs beyond this is what its quotas and its books cost.

import { Module } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { tuneCollector } from '../../../apps/gateway/dist/collector.js';
import { gatewayConfigSchema } from '../../../apps/gateway/dist/config.js';
import { gatewayApp } from '../../../apps/gateway/dist/gateway-app.js';
import { MeteredCalls } from '../../../apps/gateway/dist/metered/metered-calls.js';
import { registerMeteredRoutes } from '../../../apps/gateway/dist/metered/metered-routes.plugin.js';
import { modelFor } from '../../../apps/gateway/dist/caller/caller.js';
import { GatewayMetrics } from '../../../apps/gateway/dist/observe/gateway-metrics.js';
import { meteredRoutes } from '../../../apps/gateway/dist/routes/index.js';
import { AdaptiveLimits } from '../../../apps/gateway/dist/upstream/adaptive-limits.js';
import { chooseUpstream } from '../../../apps/gateway/dist/upstream/choose-upstream.js';
import { UpstreamClient } from '../../../apps/gateway/dist/upstream/upstream-client.js';
import { systemClock } from '../../../libs/domain/dist/index.js';
import {
  createLogger,
  loadConfig,
  Metrics,
  SecretBox,
  startWeirApp,
} from '../../../libs/platform/dist/index.js';
import { connectQuotaRedis, PolicyStore } from '../../../libs/quota/dist/index.js';

tuneCollector();

const config = loadConfig(gatewayConfigSchema);
const logger = createLogger({ name: 'quotas-off', level: config.LOG_LEVEL });
// Of Redis the policies alone are read, once.
const redis = connectQuotaRedis({
  url: config.REDIS_URL,
  shardCount: config.SHARD_COUNT,
  commandTimeoutMs: config.REDIS_COMMAND_TIMEOUT_MS,
});
const policies = new PolicyStore(redis);
await policies.start();

const notReserved = { reservedTokens: 0, forwardedCap: null, extendable: false };
const notLeased = {
  id: '',
  shard: 0,
  enterpriseId: '',
  reservedAtMs: 0,
  expiresAtMs: 0,
  periodId: '',
};
const admission = {
  refuseEarly: () => undefined,
  admit: async (/** @type {any} */ { caller, route, asked, requestId, attempt, tried }) => {
    const model = modelFor(caller.policy, asked.model, route);
    const candidate = chooseUpstream(caller.policy, model, tried, () => true, Math.random);
    if (candidate === null) return null;
    return {
      caller,
      admitted: { outcome: 'admitted', lease: notLeased, remaining: [], degraded: false },
      model,
      candidate,
      price: null,
      promptTokens: 0,
      plan: notReserved,
      draft: { requestId, attempt, route: route.path, streamed: asked.streamed },
    };
  },
};
const nothing = () => undefined;

/**
 * @param {GatewayMetrics} metrics
 * @returns {any} what the gateway's pipeline is made of
 */
const partsWith = (metrics) => ({
  config,
  logger,
  clock: systemClock,
  policies,
  admission,
  waiting: {
    hasRoom: () => false,
    admit: (/** @type {unknown} */ _call, /** @type {(waitMs: number) => unknown} */ attempt) =>
      attempt(0),
  },
  settler: {
    end: async (/** @type {any} */ call, /** @type {any} */ end) => {
      if (!call.markEnded()) return null;
      const charge = { kind: 'nothing' };
      metrics.callEnded(call, end, /** @type {any} */ (charge));
      return charge;
    },
    release: async () => undefined,
  },
  keeper: { track: nothing },
  adaptive: new AdaptiveLimits(false),
  upstreams: new UpstreamClient({
    allowPrivate: config.UPSTREAM_ALLOW_PRIVATE,
    connectionsMax: config.UPSTREAM_CONNECTIONS_MAX,
    secretBox: SecretBox.fromSetting(config.WEIR_SECRET_KEY),
  }),
  metrics,
  noteCaller: nothing,
});

class QuotasOffModule {
  /**
   * @param {HttpAdapterHost} host
   * @param {Metrics} metrics
   */
  constructor(host, metrics) {
    const calls = new MeteredCalls(partsWith(new GatewayMetrics(metrics.registry)));
    registerMeteredRoutes(host.httpAdapter.getInstance(), meteredRoutes, calls);
  }
}
Module({})(QuotasOffModule);
Reflect.defineMetadata('design:paramtypes', [HttpAdapterHost, Metrics], QuotasOffModule);

await startWeirApp(QuotasOffModule, gatewayApp(config, logger).options);
