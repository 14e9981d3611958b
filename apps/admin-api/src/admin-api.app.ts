import { access } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import helmet from '@fastify/helmet';
import rateLimit from '@fastify/rate-limit';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { adminApi, type ApiRoute } from '@weir/domain';
import type { Logger, WeirAppOptions } from '@weir/platform';
import type { FastifyInstance } from 'fastify';
import type { AdminConfig } from './config.js';
import { serveConsole } from './console/console-files.js';
import { signInRateLimit } from './http/rate-limit.js';

/** How the admin API's server is set up, for main and for tests alike. */
export function adminAppOptions(config: AdminConfig, logger: Logger): WeirAppOptions {
  return {
    name: 'admin-api',
    logger,
    host: config.HOST,
    port: config.PORT,
    trustProxy: config.TRUST_PROXY,
    shutdownGraceMs: config.SHUTDOWN_GRACE_MS,
    metricsToken: config.METRICS_TOKEN,
    bodyLimitBytes: 256 * 1024,
    configure: (app) => configure(app, config, logger),
  };
}

async function configure(
  app: NestFastifyApplication,
  config: AdminConfig,
  logger: Logger,
): Promise<void> {
  const fastify = app.getHttpAdapter().getInstance() as unknown as FastifyInstance;
  allowLargeBodies(fastify);
  await fastify.register(rateLimit, signInRateLimit(config.SIGN_IN_RATE_PER_MINUTE));
  await fastify.register(helmet, {
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'self'"],
        baseUri: ["'none'"],
        connectSrc: ["'self'"],
        fontSrc: ["'self'"],
        formAction: ["'self'"],
        frameAncestors: ["'none'"],
        imgSrc: ["'self'", 'data:'],
        objectSrc: ["'none'"],
        scriptSrc: ["'self'"],
        // Toasts, charts and the virtual list place things by inline style; a style cannot run code.
        styleSrc: ["'self'", "'unsafe-inline'"],
      },
    },
    crossOriginEmbedderPolicy: false,
    frameguard: { action: 'deny' },
    referrerPolicy: { policy: 'same-origin' },
  });
  if (config.CONSOLE_DIR === undefined) return;
  const folder = resolve(config.CONSOLE_DIR);
  const isBuilt = await access(join(folder, 'index.html')).then(
    () => true,
    () => false,
  );
  if (isBuilt) await serveConsole(fastify, folder);
  else logger.warn({ folder }, 'there is no built console here: only the API is served');
}

/** Gives the few routes that take files a body limit of their own; all others keep the server's. */
function allowLargeBodies(fastify: FastifyInstance): void {
  const routes: readonly ApiRoute[] = Object.values(adminApi);
  fastify.addHook('onRoute', (options) => {
    const methods = [options.method].flat().map((method) => method.toLowerCase());
    const route = routes.find(
      ({ path, method }) => path === options.url && methods.includes(method),
    );
    if (route?.bodyLimitBytes !== undefined) options.bodyLimit = route.bodyLimitBytes;
  });
}
