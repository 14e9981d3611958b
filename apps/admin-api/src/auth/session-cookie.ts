import type { FastifyReply, FastifyRequest } from 'fastify';

export const sessionCookie = 'weir_session';

/** The token of the request's session cookie. Base64url, so that nothing needs to be decoded. */
export function sessionTokenOf(request: FastifyRequest): string | undefined {
  const pairs = (request.headers.cookie ?? '').split(';');
  const own = pairs.find((pair) => pair.trimStart().startsWith(`${sessionCookie}=`));
  return own?.slice(own.indexOf('=') + 1).trim();
}

export function setSessionCookie(
  request: FastifyRequest,
  reply: FastifyReply,
  token: string,
  maxAgeSeconds: number,
): void {
  void reply.header('set-cookie', cookieText(request, token, maxAgeSeconds));
}

export function clearSessionCookie(request: FastifyRequest, reply: FastifyReply): void {
  void reply.header('set-cookie', cookieText(request, '', 0));
}

/** RFC 6265. Secure wherever the browser came by https, so that installations on plain http still sign in. */
function cookieText(request: FastifyRequest, token: string, maxAgeSeconds: number): string {
  const secure = request.protocol === 'https' ? '; Secure' : '';
  return `${sessionCookie}=${token}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax${secure}`;
}
