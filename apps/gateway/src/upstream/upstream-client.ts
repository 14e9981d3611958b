import { EventEmitter } from 'node:events';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { pipeline, type Readable } from 'node:stream';
import type { UpstreamDocument } from '@weir/domain';
import type { SecretBox } from '@weir/platform';
import { LRUCache } from 'lru-cache';
import { errors, Pool, type Dispatcher } from 'undici';
import { AddressNotAllowedError, guardedLookup, requireAllowedHost } from './address-guard.js';
import { upstreamHeaders, type ForwardableHeaders } from './upstream-headers.js';
import { AnswerHandler, WholeBody, type AnswerHeaders } from './whole-answer.js';

/** How far a call had come when the upstream failed. Nothing was sent in `connect`. */
export type UpstreamPhase = 'connect' | 'headers' | 'body';

/** An upstream that did not answer: out of reach, too slow, or it hung up. */
export class UpstreamFailure extends Error {
  constructor(
    readonly phase: UpstreamPhase,
    readonly timedOut: boolean,
    message: string,
    options: { cause: unknown },
  ) {
    super(message, options);
    this.name = 'UpstreamFailure';
  }
}

export type UpstreamAnswer = {
  readonly status: number;
  readonly headers: AnswerHeaders;
  /** Decoded body. Destroying a stream stops the upstream. Events always come as a stream. */
  readonly body: WholeBody | Readable;
};

export type UpstreamRequest = {
  readonly path: string;
  readonly body: string;
  readonly headers: ForwardableHeaders;
  readonly requestId: string;
  readonly streamed: boolean;
  readonly cut: Cut;
  /** An answer to a call that is not streamed is read whole up to this length, beyond it as a stream. */
  readonly wholeBytesMax: number;
};

/** Stops a call at its upstream: an AbortController with one listener, at a fraction of its cost. */
export class Cut {
  private listener: (() => void) | null = null;
  private isAborted = false;

  get aborted(): boolean {
    return this.isAborted;
  }

  abort(): void {
    if (this.isAborted) return;
    this.isAborted = true;
    this.listener?.();
  }

  /** Sets who is told; at once where it has been cut already. */
  onAbort(listener: () => void): void {
    this.listener = listener;
    if (this.isAborted) listener();
  }
}

/** What an upstream's base URL says, read once for each version of its document. */
type Endpoint = { readonly base: URL; readonly pathPrefix: string; readonly poolKey: string };

const poolsMax = 256;
/** Idle connections are given up before common load balancers do (60 s), so that no call meets a closed one. */
const idleConnectionMs = 30_000;

/** Sends calls to upstreams over bounded keep-alive pools, one per address. Redirects are not followed. */
export class UpstreamClient {
  private readonly pools: LRUCache<string, Pool>;
  private readonly endpoints = new WeakMap<UpstreamDocument, Endpoint>();
  private readonly secrets = new LRUCache<string, string>({ max: 1_000 });

  constructor(
    private readonly options: {
      readonly allowPrivate: boolean;
      readonly connectionsMax: number;
      readonly secretBox: SecretBox;
    },
  ) {
    this.pools = new LRUCache({
      max: poolsMax,
      // Requests in flight end first.
      dispose: (pool) => void pool.close().catch(() => pool.destroy()),
    });
  }

  /**
   * Sends one call and waits for the head of its answer.
   *
   * @throws UpstreamFailure; an AbortError once the call is cut.
   */
  async send(upstream: UpstreamDocument, request: UpstreamRequest): Promise<UpstreamAnswer> {
    const endpoint = this.endpointOf(upstream);
    let answer: UpstreamAnswer;
    try {
      const pool = this.poolFor(upstream, endpoint);
      const options: CallOptions = {
        method: 'POST',
        path: endpoint.pathPrefix + request.path,
        headers: upstreamHeaders(upstream, this.secretOf(upstream), request),
        body: request.body,
        headersTimeout: upstream.firstByteTimeoutMs,
        bodyTimeout: upstream.idleTimeoutMs,
      };
      answer = request.streamed
        ? await requestStream(pool, options, request)
        : await requestWhole(pool, options, request);
    } catch (error) {
      if (request.cut.aborted) throw error;
      throw failureBeforeHeaders(upstream, error);
    }
    const { status, headers, body } = answer;
    if (body instanceof WholeBody) return answer;
    return { status, headers, body: decoded(body, headers['content-encoding']) };
  }

  async close(): Promise<void> {
    const pools = [...this.pools.values()];
    await Promise.all(pools.map((pool) => pool.destroy()));
  }

  private endpointOf(upstream: UpstreamDocument): Endpoint {
    let endpoint = this.endpoints.get(upstream);
    if (endpoint === undefined) {
      const base = new URL(upstream.baseUrl);
      endpoint = {
        base,
        pathPrefix: base.pathname.replace(/\/+$/, ''),
        poolKey: `${base.origin} ${upstream.connectTimeoutMs}`,
      };
      this.endpoints.set(upstream, endpoint);
    }
    return endpoint;
  }

  private poolFor(upstream: UpstreamDocument, { base, poolKey }: Endpoint): Pool {
    const known = this.pools.get(poolKey);
    if (known !== undefined) return known;
    requireAllowedHost(base, this.options.allowPrivate);
    const pool = new Pool(base.origin, {
      connections: this.options.connectionsMax,
      pipelining: 1,
      keepAliveTimeout: idleConnectionMs,
      connect: {
        timeout: upstream.connectTimeoutMs,
        lookup: guardedLookup(this.options.allowPrivate),
      },
    });
    this.pools.set(poolKey, pool);
    return pool;
  }

  private secretOf(upstream: UpstreamDocument): string | null {
    if (upstream.sealedApiKey === null) return null;
    const cacheKey = `${upstream.id} ${upstream.sealedApiKey}`;
    let secret = this.secrets.get(cacheKey);
    if (secret === undefined) {
      secret = this.options.secretBox.open(upstream.sealedApiKey, upstream.id);
      this.secrets.set(cacheKey, secret);
    }
    return secret;
  }
}

type CallOptions = Dispatcher.DispatchOptions & { readonly method: 'POST' };

async function requestStream(
  pool: Pool,
  options: CallOptions,
  { cut }: UpstreamRequest,
): Promise<UpstreamAnswer> {
  if (cut.aborted) throw new errors.RequestAbortedError();
  // What undici takes in place of a signal, which costs many times as much.
  const signal = new EventEmitter();
  cut.onAbort(() => signal.emit('abort'));
  const { statusCode: status, headers, body } = await pool.request({ ...options, signal });
  return { status, headers, body };
}

function requestWhole(
  pool: Pool,
  options: CallOptions,
  { cut, wholeBytesMax }: UpstreamRequest,
): Promise<UpstreamAnswer> {
  return new Promise((resolve, reject) => {
    const handler = new AnswerHandler(wholeBytesMax, resolve, reject);
    cut.onAbort(() => handler.abort(new errors.RequestAbortedError()));
    pool.dispatch(options, handler);
  });
}

const connectCodes: ReadonlySet<string> = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
]);

function failureBeforeHeaders(upstream: UpstreamDocument, error: unknown): UpstreamFailure {
  const code = codeOf(error);
  const isConnect =
    connectCodes.has(code) ||
    error instanceof AddressNotAllowedError ||
    // Certificates that do not verify, and sealed keys that do not open: nothing was sent either.
    /^(ERR_TLS|CERT_|DEPTH_|SELF_SIGNED|UNABLE_TO|not_authentic|malformed|unknown_key)/.test(code);
  const timedOut = code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'UND_ERR_HEADERS_TIMEOUT';
  const what = timedOut
    ? isConnect
      ? 'could not be reached in time'
      : 'did not begin to answer in time'
    : isConnect
      ? 'could not be reached'
      : 'closed the connection without an answer';
  return new UpstreamFailure(
    isConnect ? 'connect' : 'headers',
    timedOut,
    `The provider "${upstream.name}" ${what}.`,
    { cause: error },
  );
}

/** A failure while the body was read. */
export function failureInBody(upstream: UpstreamDocument, error: unknown): UpstreamFailure {
  const timedOut = codeOf(error) === 'UND_ERR_BODY_TIMEOUT';
  const what = timedOut ? 'stopped sending in the middle of its answer' : 'broke off its answer';
  return new UpstreamFailure('body', timedOut, `The provider "${upstream.name}" ${what}.`, {
    cause: error,
  });
}

function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('code' in error)) return '';
  return typeof error.code === 'string' ? error.code : '';
}

/** We ask for plain bodies; an upstream that compresses all the same is decoded, because usage must be read. */
function decoded(body: Readable, encoding: string | string[] | undefined): Readable {
  const decoder =
    encoding === 'gzip' || encoding === 'x-gzip'
      ? createGunzip()
      : encoding === 'br'
        ? createBrotliDecompress()
        : encoding === 'deflate'
          ? createInflate()
          : null;
  if (decoder === null) return body;
  // Errors of either side surface where the decoded body is read.
  return pipeline(body, decoder, () => undefined);
}
