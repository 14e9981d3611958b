import { timingSafeEqual } from 'node:crypto';
import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { adminApi, may, WeirError, type ApiRoute, type OperationId } from '@weir/domain';
import { Sessions } from '../auth/sessions.js';
import { sessionTokenOf } from '../auth/session-cookie.js';
import { operationMetadata, type AdminRequest } from './operation.js';

const csrfHeader = 'x-csrf-token';

/**
 * Applies the route table before any handler runs: who is it, did the page mean it, may the role do it. Which rows the
 * caller may reach is the services' part.
 */
@Injectable()
export class ApiGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly sessions: Sessions,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const operationId = this.reflector.get<OperationId | undefined>(
      operationMetadata,
      context.getHandler(),
    );
    // Only routes outside of the table (health, metrics, the gateways' own) have no operation.
    if (operationId === undefined) return true;
    const route: ApiRoute = adminApi[operationId];
    const request = context.switchToHttp().getRequest<AdminRequest>();
    if (route.method !== 'get') refuseCrossSite(request);
    if (route.permission === null) return true;

    const session = await this.sessions.find(sessionTokenOf(request));
    if (session === null) {
      throw new WeirError('unauthenticated', 'Sign in first, or again: the session has ended.');
    }
    if (route.method !== 'get') requireCsrfToken(request, session.csrfToken);
    if (route.permission !== 'signed-in' && !may(session.actor.role, route.permission)) {
      throw new WeirError('forbidden', `The role ${session.actor.role} may not do this.`, {
        permission: route.permission,
        role: session.actor.role,
      });
    }
    request.weirActor = session.actor;
    request.weirSession = { sha256: session.sha256, csrfToken: session.csrfToken };
    return true;
  }
}

/** Browsers say where a request comes from; sign-in has no token yet that could be checked. */
function refuseCrossSite(request: AdminRequest): void {
  if (request.headers['sec-fetch-site'] === 'cross-site') {
    throw new WeirError('csrf_failed', 'Requests from other sites are not taken.');
  }
}

function requireCsrfToken(request: AdminRequest, wanted: string): void {
  const given = request.headers[csrfHeader];
  const left = Buffer.from(typeof given === 'string' ? given : '');
  const right = Buffer.from(wanted);
  if (left.length !== right.length || !timingSafeEqual(left, right)) {
    throw new WeirError(
      'csrf_failed',
      `Send the ${csrfHeader} header with the csrfToken of GET /api/v1/auth/me.`,
    );
  }
}
