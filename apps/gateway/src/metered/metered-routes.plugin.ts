import type { FastifyInstance } from 'fastify';
import type { MeteredRoute } from '../routes/metered-route.js';
import type { MeteredCalls } from './metered-calls.js';

/**
 * Puts the metered routes on the server. They are Fastify routes rather than controllers because a call is authenticated
 * before its body is read: the body reaches the pipeline as an unread stream, and the answer is written to the raw
 * response, so that neither is ever held twice in memory.
 */
export function registerMeteredRoutes(
  fastify: FastifyInstance,
  routes: readonly MeteredRoute[],
  calls: MeteredCalls,
): void {
  void fastify.register((scope, _options, done) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, payload, parsed) => parsed(null, payload));
    for (const route of routes) {
      scope.post(route.path, (request, reply) => {
        reply.hijack();
        calls.serve(route, request.raw, reply.raw, { requestId: request.id, address: request.ip });
      });
    }
    done();
  });
}
