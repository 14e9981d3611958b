import { ownHead } from '@weir/platform';
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
    for (const route of routes) {
      scope.post(
        route.path,
        {
          config: ownHead,
          // The last of the hooks before a body would be read. It takes the call over and never hands it on.
          onRequest: (request, reply, _next) => {
            reply.hijack();
            const from = { requestId: request.id, address: request.ip };
            calls.serve(route, request.raw, reply.raw, from);
          },
        },
        () => {
          throw new Error('metered calls are taken over before their handler');
        },
      );
    }
    done();
  });
}
