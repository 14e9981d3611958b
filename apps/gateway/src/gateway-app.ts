import { systemClock, type Clock } from '@weir/domain';
import type { Logger, WeirAppOptions } from '@weir/platform';
import type { DynamicModule } from '@nestjs/common';
import { dialectOfUrl, errorBody } from './answers/error-body.js';
import type { GatewayConfig } from './config.js';
import { GatewayModule } from './gateway.module.js';

/** The gateway as module and options, for `startWeirApp` and, in tests, `createWeirApp`. */
export function gatewayApp(
  config: GatewayConfig,
  logger: Logger,
  clock: Clock = systemClock,
): { module: DynamicModule; options: WeirAppOptions } {
  return {
    module: GatewayModule.forRoot(config, clock),
    options: {
      name: 'gateway',
      logger,
      host: config.HOST,
      port: config.PORT,
      trustProxy: config.TRUST_PROXY,
      shutdownGraceMs: config.SHUTDOWN_GRACE_MS,
      metricsToken: config.METRICS_TOKEN,
      bodyLimitBytes: config.BODY_LIMIT_BYTES,
      headerLimitBytes: config.HEADER_LIMIT_BYTES,
      renderError: (error, requestId, url) =>
        errorBody(error, dialectOfUrl(url), { requestId, docsUrl: config.DOCS_URL }),
    },
  };
}
