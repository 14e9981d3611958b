import { Inject, Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { Clock } from '@weir/domain';
import { PolicyStore } from '@weir/quota';
import type { FastifyRequest } from 'fastify';
import { authenticate, requireAllowedAddress, type Caller } from '../caller/caller.js';
import { CLOCK } from '../injection-tokens.js';

export type AuthenticatedRequest = FastifyRequest & { caller: Caller };

/** Lets a request pass whose API key is known and may be used from where it comes, and gives it its caller. */
@Injectable()
export class ApiKeyGuard implements CanActivate {
  constructor(
    @Inject(PolicyStore) private readonly policies: PolicyStore,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<AuthenticatedRequest>();
    const { headers, ip } = request;
    request.caller = await authenticate(headers, ip, this.policies, this.clock);
    requireAllowedAddress(request.caller);
    return true;
  }
}
