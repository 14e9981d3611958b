import { Inject, Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { Clock } from '@weir/domain';
import { PolicyStore } from '@weir/quota';
import type { FastifyRequest } from 'fastify';
import { authenticate, type Caller } from '../caller/caller.js';
import { CLOCK } from '../injection-tokens.js';

export type AuthenticatedRequest = FastifyRequest & { caller: Caller };

/** Lets a request pass whose API key is known, and gives it its caller. */
@Injectable()
export class ApiKeyGuard implements CanActivate {
  constructor(
    @Inject(PolicyStore) private readonly policies: PolicyStore,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<AuthenticatedRequest>();
    request.caller = await authenticate(request.headers, this.policies, this.clock);
    return true;
  }
}
