import {
  Injectable,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { adminApi, type ApiRoute, type OperationId } from '@weir/domain';
import type { FastifyReply } from 'fastify';
import { map, type Observable } from 'rxjs';
import { z } from 'zod';
import { PolicyPublication } from '../control/policy-publication.js';
import { operationMetadata, type AdminRequest } from './operation.js';

const versioned = z.object({ version: z.int() });

/**
 * Holds every answer to the contract: what the route's schema does not name (a password's hash, say) fails the request
 * instead of leaving the server. Gives rows their ETag, the value that `If-Match` wants back, and changes their
 * `x-policy-state`: `in-force`, or `pending` while Redis cannot be told (the change is stored and follows by itself).
 */
@Injectable()
export class AnswerInterceptor implements NestInterceptor {
  constructor(
    private readonly reflector: Reflector,
    private readonly publication: PolicyPublication,
  ) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const operationId = this.reflector.get<OperationId | undefined>(
      operationMetadata,
      context.getHandler(),
    );
    if (operationId === undefined) return next.handle();
    const route: ApiRoute = adminApi[operationId];
    const http = context.switchToHttp();
    const reply = http.getResponse<FastifyReply>();
    const enterpriseId = http.getRequest<AdminRequest>().weirActor?.enterpriseId;
    void reply.header('cache-control', 'no-store');
    const schema = route.response;
    return next.handle().pipe(
      map((answer: unknown) => {
        if (route.method !== 'get' && enterpriseId !== undefined) {
          const isInForce = this.publication.isInForce(enterpriseId);
          void reply.header('x-policy-state', isInForce ? 'in-force' : 'pending');
        }
        if (schema === null || schema === 'file') return answer;
        const checked = schema.parse(answer);
        const row = versioned.safeParse(checked);
        if (row.success) void reply.header('etag', `"${row.data.version}"`);
        return checked;
      }),
    );
  }
}
