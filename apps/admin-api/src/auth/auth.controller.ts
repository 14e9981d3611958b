import { Controller, Inject } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import { WeirError } from '@weir/domain';
import type { AdminConfig } from '../config.js';
import { Operation, type AdminRequest, type AnswerOf, type CallOf } from '../http/operation.js';
import { signInRateLimited } from '../http/rate-limit.js';
import { ADMIN_CONFIG } from '../tokens.js';
import { clearSessionCookie, setSessionCookie } from './session-cookie.js';
import { Sessions } from './sessions.js';
import { SignIn } from './sign-in.js';

@Controller()
export class AuthController {
  constructor(
    private readonly signIns: SignIn,
    private readonly sessions: Sessions,
    @Inject(ADMIN_CONFIG) private readonly config: AdminConfig,
  ) {}

  @Operation('signIn')
  @RouteConfig(signInRateLimited)
  async signIn({ body, request, reply }: CallOf<'signIn'>): Promise<AnswerOf<'signIn'>> {
    const { token, me } = await this.signIns.signIn(body.email, body.password);
    setSessionCookie(request, reply, token, this.config.SESSION_TTL);
    return me;
  }

  @Operation('signOut')
  async signOut({ request, reply }: CallOf<'signOut'>): Promise<void> {
    await this.sessions.end(sessionOf(request).sha256);
    clearSessionCookie(request, reply);
  }

  @Operation('me')
  async me({ actor, request }: CallOf<'me'>): Promise<AnswerOf<'me'>> {
    if (actor.userId === null) throw new WeirError('unauthenticated', 'Nobody is signed in.');
    return this.signIns.me(actor.userId, sessionOf(request).csrfToken);
  }
}

function sessionOf(request: AdminRequest): { sha256: string; csrfToken: string } {
  if (request.weirSession === undefined) throw new Error('the guard lets no one here without it');
  return request.weirSession;
}
