import { stat } from 'node:fs/promises';
import { extname, join, normalize, sep } from 'node:path';
import fastifyStatic from '@fastify/static';
import { WeirError } from '@weir/domain';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

/** Vite puts files whose names carry a hash of their content here: they never change. */
const hashedFolder = 'assets';
const neverChanges = 'public, max-age=31536000, immutable';
/** index.html names the current assets: a browser must ask each time whether there is a newer one. */
const askFirst = 'no-cache';

/**
 * Serves the built console beside the API. Paths that are no file are the console's own routes and get index.html;
 * paths of the API never do, so that a wrong call gets an error and not a page.
 *
 * @param folder the build's output; must have an index.html.
 */
export async function serveConsole(fastify: FastifyInstance, folder: string): Promise<void> {
  await fastify.register(fastifyStatic, { root: folder, serve: false, cacheControl: false });
  fastify.get('/*', async (request, reply) => serve(folder, request, reply));
}

async function serve(
  folder: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const path = requestedPath(request.url);
  if (path === null || /^\/(api|internal)(\/|$)/.test(path)) throw noSuchPath(request);
  const file = normalize(path).replaceAll(sep, '/').replace(/^\/+/, '');
  if (file !== '' && (await isFile(join(folder, file)))) {
    const isHashed = file.startsWith(`${hashedFolder}/`);
    return reply.header('cache-control', isHashed ? neverChanges : askFirst).sendFile(file);
  }
  // A missing script must be a 404: answered with a page it would fail in a way that nobody understands.
  if (extname(file) !== '') throw noSuchPath(request);
  return reply.header('cache-control', askFirst).sendFile('index.html');
}

/** The decoded path, or null when it is not one: bad escapes, or a way out of the folder. */
function requestedPath(url: string): string | null {
  try {
    const path = decodeURIComponent(url.split('?', 1)[0] ?? '/');
    return path.includes('\0') || path.split(/[\\/]/).includes('..') ? null : path;
  } catch {
    return null;
  }
}

async function isFile(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

export function noSuchPath(request: FastifyRequest): WeirError {
  return new WeirError(
    'not_found',
    `There is nothing at ${request.method} ${pathOnly(request.url)}.`,
  );
}

function pathOnly(url: string): string {
  return (url.split('?', 1)[0] ?? '').slice(0, 200);
}
