import type {} from '@fastify/cookie';
import type { FastifyReply, FastifyRequest } from 'fastify';

export const sessionCookie = 'weir_session';

const attributes = { path: '/', httpOnly: true, sameSite: 'lax' } as const;

/** Secure wherever the browser came by https, so that installations on plain http (a laptop, a test) still sign in. */
export function setSessionCookie(
  request: FastifyRequest,
  reply: FastifyReply,
  token: string,
  maxAgeSeconds: number,
): void {
  void reply.setCookie(sessionCookie, token, {
    ...attributes,
    secure: request.protocol === 'https',
    maxAge: maxAgeSeconds,
  });
}

export function clearSessionCookie(request: FastifyRequest, reply: FastifyReply): void {
  void reply.clearCookie(sessionCookie, { ...attributes, secure: request.protocol === 'https' });
}
