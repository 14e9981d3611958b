import 'reflect-metadata';
import { STATUS_CODES, type Server } from 'node:http';
import type { Socket } from 'node:net';
import type { DynamicModule, Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { newId, WeirError } from '@weir/domain';
import type { FastifyHttpOptions, FastifyInstance, FastifyRequest } from 'fastify';
import { Histogram } from 'prom-client';
import { renderAdminError, WeirExceptionFilter, type RenderError } from './exception-filter.js';
import { HealthChecks } from './health.js';
import { NestLogger, type Logger } from './logger.js';
import { Metrics } from './metrics.js';
import { PlatformModule } from './platform.module.js';
import { endWithProcess, type ProcessHost } from './process-end.js';
import { requestIdFrom, requestIdHeader } from './request-id.js';
import { fastifyTrustProxy, type TrustedProxies } from './trusted-proxies.js';
import { createValidationPipe } from './validation.js';

export type WeirAppOptions = {
  /** The app's name in logs and metrics. */
  name: string;
  logger: Logger;
  host?: string;
  /** 0 takes any free port. */
  port?: number;
  /** Largest request body, in bytes. A larger one is `body_too_large` (413). */
  bodyLimitBytes?: number;
  /** Largest sum of the request's header lines, in bytes. */
  headerLimitBytes?: number;
  /** How long a client may take to send its whole request. */
  requestTimeoutMs?: number;
  /** How long an idle connection stays open. Longer than that of the proxy in front, or it meets closed sockets. */
  keepAliveTimeoutMs?: number;
  /** Whose `x-forwarded-*` headers are believed; nobody's unless given. */
  trustProxy?: TrustedProxies;
  /** How long requests in flight may finish once the app closes; then they are cut. */
  shutdownGraceMs?: number;
  /** How long the app goes on serving, while /readyz says `draining`, before it stops to listen. */
  drainDelayMs?: number;
  metricsToken?: string | undefined;
  /** Shape of error bodies; that of the admin API unless given. */
  renderError?: RenderError;
  /** Whether finished requests are logged (debug; 5xx warn) and timed in `http_request_duration_seconds`. */
  observeRequests?: boolean;
  /** Prefix, plugins, OpenAPI ...: runs before the app is initialised. */
  configure?: (app: NestFastifyApplication) => Promise<void> | void;
};

const defaults = {
  host: '127.0.0.1',
  port: 0,
  bodyLimitBytes: 1024 * 1024,
  headerLimitBytes: 16 * 1024,
  requestTimeoutMs: 60_000,
  keepAliveTimeoutMs: 72_000,
  shutdownGraceMs: 20_000,
  /** What the phases after the grace time may take before the process ends all the same. */
  closeMs: 10_000,
};

/**
 * A Nest app on Fastify with our limits, request ids, error bodies, validation, health and metrics; initialised but
 * not listening (`app.inject` works). `startWeirApp` also listens and reacts to signals.
 */
export async function createWeirApp(
  module: Type | DynamicModule,
  options: WeirAppOptions,
): Promise<NestFastifyApplication> {
  const filter = new WeirExceptionFilter(options.logger, options.renderError ?? renderAdminError);
  const serverOptions: FastifyHttpOptions<Server> = {
    logger: false,
    bodyLimit: options.bodyLimitBytes ?? defaults.bodyLimitBytes,
    requestTimeout: options.requestTimeoutMs ?? defaults.requestTimeoutMs,
    keepAliveTimeout: options.keepAliveTimeoutMs ?? defaults.keepAliveTimeoutMs,
    http: { maxHeaderSize: options.headerLimitBytes ?? defaults.headerLimitBytes },
    trustProxy: fastifyTrustProxy(options.trustProxy ?? false),
    // Requests that reach an open connection while the app closes are served: a restart costs no caller an error.
    return503OnClosing: false,
    requestIdHeader: false,
    genReqId: (request) => requestIdFrom(request.headers[requestIdHeader]),
    frameworkErrors: (error, request, reply) => {
      reply.raw.setHeader(requestIdHeader, request.id);
      filter.answer(error, request, reply);
    },
    clientErrorHandler: (error, socket) =>
      answerBrokenRequest(error, socket, options.renderError ?? renderAdminError),
  };
  const adapter = new FastifyAdapter(serverOptions);
  const root: DynamicModule = {
    module: RootModule,
    imports: [
      PlatformModule.forRoot({
        name: options.name,
        logger: options.logger,
        shutdownGraceMs: options.shutdownGraceMs ?? defaults.shutdownGraceMs,
        metricsToken: options.metricsToken ?? null,
      }),
      module,
    ],
  };
  const app = await NestFactory.create<NestFastifyApplication>(root, adapter, {
    logger: new NestLogger(options.logger),
    abortOnError: false,
  });
  const fastify = adapter.getInstance() as unknown as FastifyInstance;
  fastify.addHook('onRequest', (request, reply, done) => {
    // On the raw response, so that answers that bypass Fastify's reply carry it too.
    if (!writesOwnHead(request)) reply.raw.setHeader(requestIdHeader, request.id);
    done();
  });
  if (options.observeRequests ?? true) observeRequests(fastify, app.get(Metrics), options.logger);
  app.useGlobalFilters(filter);
  app.useGlobalPipes(createValidationPipe());
  await options.configure?.(app);
  await app.init();
  await fastify.ready();
  return app;
}

class RootModule {}

/**
 * `config` of a route that writes every head of its answers by itself, request id included: Node puts a head together
 * faster when no header was set before it.
 */
export const ownHead: { readonly weirOwnHead: true } = { weirOwnHead: true };

function writesOwnHead(request: FastifyRequest): boolean {
  return 'weirOwnHead' in request.routeOptions.config;
}

function observeRequests(fastify: FastifyInstance, metrics: Metrics, logger: Logger): void {
  const duration = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Time from the request line to the end of the answer.',
    labelNames: ['method', 'route', 'status'] as const,
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120],
    registers: [metrics.registry],
  });
  fastify.addHook('onResponse', (request, reply, done) => {
    const status = reply.statusCode;
    // The route's pattern, not the url: an attacker must not be able to create series.
    const route = request.routeOptions.url ?? '(none)';
    duration.observe({ method: request.method, route, status }, reply.elapsedTime / 1_000);
    const level = status >= 500 ? 'warn' : 'debug';
    if (logger.isLevelEnabled(level)) {
      const elapsed_ms = Math.round(reply.elapsedTime);
      logger[level](
        { request_id: request.id, method: request.method, route, status, elapsed_ms },
        'request',
      );
    }
    done();
  });
}

/** Bytes that are no HTTP request never become one in Fastify: answer on the socket. */
function answerBrokenRequest(
  error: Error & { code?: string },
  socket: Socket,
  render: RenderError,
): void {
  if (error.code === 'ECONNRESET' || socket.destroyed || !socket.writable) {
    socket.destroy();
    return;
  }
  const requestId = newId();
  const fault =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? new WeirError('headers_too_large', 'The request headers are too large.')
      : new WeirError(
          'invalid_request',
          'This is not a valid HTTP request, or it took too long to arrive.',
        );
  const status = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : fault.httpStatus;
  const body = JSON.stringify(render(fault, requestId, ''));
  socket.end(
    [
      `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Error'}`,
      'content-type: application/json; charset=utf-8',
      `content-length: ${Buffer.byteLength(body)}`,
      `${requestIdHeader}: ${requestId}`,
      'connection: close',
      '',
      body,
    ].join('\r\n'),
  );
}

/**
 * Creates the app, listens, and ends with the process as `endWithProcess` describes, within
 * `drainDelayMs + shutdownGraceMs` plus ten seconds.
 */
export async function startWeirApp(
  module: Type | DynamicModule,
  options: WeirAppOptions,
  host: ProcessHost = process,
): Promise<NestFastifyApplication> {
  const { logger } = options;
  const drainDelayMs = options.drainDelayMs ?? 0;
  const graceMs = options.shutdownGraceMs ?? defaults.shutdownGraceMs;
  let app: NestFastifyApplication | undefined = undefined;
  // Before anything is created, so that a fault while starting is logged too.
  endWithProcess(
    {
      logger,
      boundMs: drainDelayMs + graceMs + defaults.closeMs,
      close: async () => {
        app?.get(HealthChecks).startDraining();
        if (drainDelayMs > 0) await new Promise((resolve) => setTimeout(resolve, drainDelayMs));
        await app?.close();
      },
    },
    host,
  );
  app = await createWeirApp(module, options);
  app.get(Metrics).collectProcessMetrics();
  await app.listen(options.port ?? defaults.port, options.host ?? defaults.host);
  logger.info({ url: await app.getUrl() }, 'listening');
  return app;
}
