import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { WeirError, type CallerPolicy, type Clock } from '@weir/domain';
import { toWeirError, type Logger } from '@weir/platform';
import type { PolicyStore, QuotaEngine, Violation } from '@weir/quota';
import type { TokenCounter } from '@weir/tokens';
import type { Admission, AdmittedCall, PromptSize } from '../admission/admission.js';
import { outputCeiling, outputTokenPico } from '../admission/reservation.js';
import { leavesRoom } from '../admission/room.js';
import {
  errorBody,
  errorHeaders,
  errorStatus,
  weirPart,
  type ErrorContext,
} from '../answers/error-body.js';
import {
  addAnthropicLimitHeaders,
  addLimitHeaders,
  refusedRemaining,
} from '../answers/limit-headers.js';
import { limitRefusal } from '../answers/limit-refusal.js';
import { refusalTexts } from '../answers/refusal-text.js';
import { authenticate, modelFor, requireAllowedAddress, type Caller } from '../caller/caller.js';
import type { GatewayConfig } from '../config.js';
import type { GatewayMetrics } from '../observe/gateway-metrics.js';
import { recordedBytesMax, type IdempotencyStore } from '../idempotency/idempotency-store.js';
import type { RefusalLog } from '../observe/refusal-log.js';
import { ClientStream, streamHead } from '../relay/client-stream.js';
import { DeliveredText } from '../relay/delivered-text.js';
import { Drains } from '../relay/drains.js';
import { relayStream } from '../relay/relay-stream.js';
import { sseEvent } from '../relay/sse-splitter.js';
import { Taximeter } from '../relay/taximeter.js';
import { requirePricedTier } from '../request/fields.js';
import {
  parseJsonObject,
  readBody,
  requireJsonContent,
  type JsonObject,
} from '../request/json-body.js';
import { readTags } from '../request/tags.js';
import type { AskedCall, MeteredRoute } from '../routes/metered-route.js';
import type { LeaseKeeper } from '../settlement/lease-keeper.js';
import { LiveCall } from '../settlement/live-call.js';
import { Roster } from '../settlement/roster.js';
import type { Settler } from '../settlement/settler.js';
import { Underway } from '../settlement/underway.js';
import type { WaitNotice } from '../waiting/wait-notices.js';
import type { WaitingRoom } from '../waiting/waiting-room.js';
import type { AdaptiveLimits } from '../upstream/adaptive-limits.js';
import { candidateKey } from '../upstream/choose-upstream.js';
import {
  Cut,
  failureInBody,
  UpstreamFailure,
  type UpstreamAnswer,
  type UpstreamClient,
} from '../upstream/upstream-client.js';
import {
  isRetryableStatus,
  parseErrorBody,
  upstreamFailureError,
  upstreamRefusal,
} from '../upstream/upstream-errors.js';
import { forwardableHeaders, returnedHeaders } from '../upstream/upstream-headers.js';
import { isEventStream, WholeBody } from '../upstream/whole-answer.js';

export type MeteredCallsParts = {
  readonly config: GatewayConfig;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly engine: QuotaEngine;
  readonly policies: PolicyStore;
  readonly counter: TokenCounter;
  readonly admission: Admission;
  readonly waiting: WaitingRoom;
  readonly adaptive: AdaptiveLimits;
  readonly upstreams: UpstreamClient;
  readonly settler: Settler;
  readonly keeper: LeaseKeeper;
  readonly refusals: RefusalLog;
  readonly metrics: GatewayMetrics;
  readonly idempotency: IdempotencyStore;
  /** Told of each caller's policy: what to do without the store has to be known before it is gone. */
  readonly noteCaller: (policy: CallerPolicy) => void;
};

/** One request on its way through. */
type Incoming = {
  readonly route: MeteredRoute;
  readonly request: IncomingMessage;
  readonly requestId: string;
  /** Where the call came from, as far as TRUST_PROXY lets a proxy say it. */
  readonly address: string;
  readonly client: ClientStream;
  readonly startedMs: number;
};

type ReadCall = Incoming & {
  readonly caller: Caller;
  readonly bytes: Buffer;
  readonly body: JsonObject;
  readonly asked: AskedCall;
  readonly tags: Readonly<Record<string, string>>;
};

/** A model's upstreams are tried at most this often for one call. */
const attemptsMax = 4;
const errorBodyBytesMax = 64 * 1024;
/** What a stored conversation may add to a prompt is known to the upstream alone: at least this is reserved for it. */
const storedContextTokens = 4_096;

/**
 * The road of every metered call: authenticate, parse, count, admit, dispatch, relay, settle. Routes differ in the shape
 * of their bodies only. Checks are in the order of their cost, and nothing is reserved before all cheap ones passed.
 */
export class MeteredCalls {
  readonly drains: Drains;
  private readonly running = new Underway();
  /** What waits on an upstream, to be cut off at the end of this process. */
  private readonly cuts = new Roster<{ abort(): void }>();
  private isStopping = false;

  constructor(private readonly parts: MeteredCallsParts) {
    this.drains = new Drains(parts.config.DRAINS_MAX, parts.config.DRAIN_MS_MAX);
  }

  get inFlight(): number {
    return this.running.size;
  }

  /** Serves one request. Never rejects: every end is an answer or a closed connection. */
  serve(
    route: MeteredRoute,
    request: IncomingMessage,
    response: ServerResponse,
    from: Pick<Incoming, 'requestId' | 'address'>,
  ): void {
    const { requestId, address } = from;
    const client = new ClientStream(response, requestId, this.parts.config.CLIENT_STALL_MS);
    const incoming = { route, request, requestId, address, client, startedMs: performance.now() };
    // Counted from when it was let in: the call itself does not take the room that it asks for.
    const run = this.answer(incoming, response);
    this.running.begin();
    void run.finally(() => this.running.end());
  }

  /** For the shutdown, once the server has given its callers their time: stops what still runs and waits for its settlement. */
  async stop(): Promise<void> {
    this.isStopping = true;
    for (const cut of this.cuts) cut.abort();
    await this.running.idle();
  }

  private async answer(incoming: Incoming, response: ServerResponse): Promise<void> {
    let known: { policy: CallerPolicy; model: string } | null = null;
    let asked: AskedCall | null = null;
    try {
      this.requireRoom();
      const caller = await authenticate(
        incoming.request.headers,
        incoming.address,
        this.parts.policies,
        this.parts.clock,
      );
      known = { policy: caller.policy, model: '' };
      this.parts.noteCaller(caller.policy);
      requireAllowedAddress(caller);
      // What would be refused may wait instead; for that the whole call must be known.
      if (!this.parts.waiting.hasRoom(caller.policy)) this.parts.admission.refuseEarly(caller);
      const call = await this.read(incoming, caller);
      known = { policy: caller.policy, model: call.asked.model };
      asked = call.asked;
      modelFor(caller.policy, call.asked.model, incoming.route);
      await this.once(call);
    } catch (thrown) {
      const error = toWeirError(thrown);
      if (error.details['violation'] !== undefined) {
        this.parts.metrics.admission('refused', secondsSince(incoming.startedMs));
      }
      if (known !== null) this.recordRefusal(incoming, known.policy, known.model, error);
      this.logFault(incoming, error);
      const { client, route } = incoming;
      const body = errorBody(error, route.dialect, this.errorContext(incoming));
      if (client.isWaiting && asked !== null) client.end(route.openStream(asked).failure(body));
      else if (response.headersSent) response.destroy();
      else {
        const status = errorStatus(error, incoming.request.headers['user-agent']);
        client.answer(status, this.headersOf(error, route), JSON.stringify(body));
      }
    }
  }

  private requireRoom(): void {
    if (this.running.size < this.parts.config.CALLS_IN_FLIGHT_MAX) return;
    throw new WeirError(
      'unavailable',
      'This gateway serves as many calls as it can. Try again in a second.',
      {
        headers: { 'retry-after': '1' },
      },
    );
  }

  private async read(incoming: Incoming, caller: Caller): Promise<ReadCall> {
    const { request, route } = incoming;
    requireJsonContent(request.headers);
    const tags = readTags(request.headers['x-weir-tags']);
    const bytes = await readBody(request, this.parts.config.BODY_LIMIT_BYTES);
    const body = parseJsonObject(bytes);
    const { requestId, address, client, startedMs } = incoming;
    const asked = route.read(body);
    requirePricedTier(body);
    return {
      route,
      request,
      requestId,
      address,
      client,
      startedMs,
      caller,
      bytes,
      body,
      asked,
      tags,
    };
  }

  /** Makes the call, or repeats the answer that it got before under the same idempotency key. */
  private once(call: ReadCall): Promise<void> {
    const key = call.request.headers['idempotency-key'];
    return key === undefined ? this.attempt(call) : this.onceUnder(String(key), call);
  }

  private async onceUnder(key: string, call: ReadCall): Promise<void> {
    const { route, client, caller, bytes } = call;
    const found = await this.parts.idempotency.claim(caller.policy, key, route.path, bytes);
    if ('replay' in found) {
      const { status, contentType, body } = found.replay;
      client.answer(status, { 'content-type': contentType, 'idempotent-replayed': 'true' }, body);
      return;
    }
    let isKept = false;
    client.record((answer) => {
      isKept = true;
      return found.claim.keep(answer);
    }, recordedBytesMax);
    try {
      await this.attempt(call);
    } finally {
      // Nothing good was answered, hence nothing charged: the caller may try again under the same key.
      if (!isKept) await found.claim.forget();
    }
  }

  /** Tries the model's upstreams until one begins to answer. Each attempt has a lease and an event of its own. */
  private async attempt(call: ReadCall): Promise<void> {
    const tried = new Set<string>();
    const counts = new Map<string, PromptSize>();
    let failure: WeirError | null = null;
    for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
      const admitted = await this.admit(call, attempt, tried, counts);
      if (call.client.hasLeft && admitted === null) return;
      if (admitted === null) break;
      if (call.client.hasLeft) return this.parts.settler.release(admitted.admitted.lease);
      tried.add(candidateKey(admitted.candidate));
      const outcome = await this.dispatch(call, admitted);
      if (outcome === 'answered') return;
      failure = outcome.error;
      if (!outcome.retryable) throw failure;
      this.recordRefusal(call, admitted.caller.policy, call.asked.model, failure);
      this.parts.logger.warn(
        {
          request_id: call.requestId,
          provider: admitted.candidate.upstream.name,
          code: failure.code,
          attempt,
        },
        'an upstream failed before its first byte',
      );
    }
    throw failure ?? new WeirError('unavailable', 'No provider could be tried.');
  }

  /** Only a call that has not been tried waits: a fallback is late already. */
  private admit(
    call: ReadCall,
    attempt: number,
    tried: ReadonlySet<string>,
    counts: Map<string, PromptSize>,
  ): Promise<AdmittedCall | null> {
    if (attempt > 1) return this.ask(call, attempt, tried, counts, 0);
    const waiting = {
      policy: call.caller.policy,
      model: call.asked.model,
      onLeave: (listener: () => void) => call.client.onLeave(listener),
      tell:
        call.asked.streamed && call.caller.policy.enterprise.settings.queue.streamNotices
          ? (notice: WaitNotice) => tellWait(call, notice)
          : null,
    };
    return this.parts.waiting.admit(waiting, (queueWaitMs) =>
      this.ask(call, attempt, tried, counts, queueWaitMs),
    );
  }

  private async ask(
    call: ReadCall,
    attempt: number,
    tried: ReadonlySet<string>,
    counts: Map<string, PromptSize>,
    queueWaitMs: number,
  ): Promise<AdmittedCall | null> {
    const { caller, route, asked, requestId, tags } = call;
    const countPrompt = async (model: string): Promise<PromptSize> => {
      const known = counts.get(model);
      if (known !== undefined) return known;
      const { tokens, estimated } = await route.countPrompt(this.parts.counter, model, call.body);
      const stored = asked.addsStoredContext ? storedContextTokens : 0;
      const size = { tokens: Math.max(1, tokens + stored), estimated: estimated || stored > 0 };
      counts.set(model, size);
      return size;
    };
    const admitted = await this.parts.admission.admit({
      caller,
      route,
      asked,
      requestId,
      attempt,
      queueWaitMs,
      tags,
      tried,
      countPrompt,
    });
    if (attempt === 1) {
      const seconds = secondsSince(call.startedMs) - queueWaitMs / 1_000;
      this.parts.metrics.admission('admitted', Math.max(0, seconds));
    }
    return admitted;
  }

  private async dispatch(
    call: ReadCall,
    admitted: AdmittedCall,
  ): Promise<'answered' | { error: WeirError; retryable: boolean }> {
    const { settler, keeper, upstreams, counter, clock, metrics } = this.parts;
    const { upstream, upstreamModel } = admitted.candidate;
    const { promptTokens } = admitted;
    const sentMs = performance.now();
    const guarded = this.parts.adaptive.begin(admitted.candidate);
    const live = new LiveCall(
      admitted.admitted.lease,
      admitted.caller.policy.enterprise.settings.leaseMs,
      admitted.draft,
      admitted.promptTokens,
      new DeliveredText(() => counter.outputCounter(upstreamModel)),
      clock,
      // Of a whole answer the first token is the last one too: its time says nothing of the load.
      call.asked.streamed
        ? () =>
            guarded.sample({ kind: 'first_token', ms: performance.now() - sentMs, promptTokens })
        : undefined,
    );
    keeper.track(live);
    const cut = new Cut();
    const place = this.cuts.add(cut);
    if (this.isStopping) cut.abort();
    // Whole answers are fetched to the end all the same: the upstream bills them in full.
    if (call.asked.streamed && upstream.onClientGone === 'abort' && !call.client.isRecorded) {
      call.client.onLeave(() => cut.abort());
    }
    try {
      const answer = await upstreams.send(upstream, {
        path: call.route.upstreamPath,
        body: JSON.stringify(
          call.route.upstreamBody(call.body, {
            upstreamModel,
            outputCap: admitted.plan.forwardedCap,
          }),
        ),
        headers: forwardableHeaders(call.request.headers),
        requestId: call.requestId,
        streamed: call.asked.streamed,
        cut,
        wholeBytesMax: this.parts.config.ANSWER_LIMIT_BYTES,
      });
      metrics.upstreamFirstByte(call.route.path, secondsSince(sentMs));
      if (answer.status < 200 || answer.status > 299) {
        if (answer.status === 429 || answer.status === 503) guarded.sample({ kind: 'overloaded' });
        return await this.refusedByUpstream(call, admitted, live, answer);
      }
      live.markAnswered();
      const { body } = answer;
      if (isEventStream(answer.headers) && !(body instanceof WholeBody)) {
        await this.relayStreamed(call, admitted, live, answer, body);
      } else {
        await this.relayWhole(call, admitted, live, answer);
      }
      return 'answered';
    } catch (thrown) {
      const isCut = thrown instanceof UpstreamFailure && thrown.phase === 'body';
      const status = call.client.hasLeft ? 'cancelled' : isCut ? 'partial' : 'error';
      await settler.end(live, { status, report: null });
      if (cut.aborted) {
        // Nobody is left to answer, or the process ends.
        if (call.client.hasLeft) return 'answered';
        throw new WeirError('unavailable', 'This gateway is shutting down. Try again.');
      }
      if (thrown instanceof UpstreamFailure) {
        if (thrown.timedOut) guarded.sample({ kind: 'overloaded' });
        const retryable = thrown.phase !== 'body' && !call.client.hasLeft;
        return { error: upstreamFailureError(upstream, thrown), retryable };
      }
      throw thrown;
    } finally {
      guarded.end();
      this.cuts.remove(place);
    }
  }

  /** Nothing is charged for a refusal, unless the upstream says that it charges for it. */
  private async refusedByUpstream(
    call: ReadCall,
    { candidate }: AdmittedCall,
    live: LiveCall,
    answer: UpstreamAnswer,
  ): Promise<{ error: WeirError; retryable: boolean }> {
    const bytes = await readWhole(answer, errorBodyBytesMax).catch(() => null);
    const body = bytes === null ? null : parseErrorBody(bytes);
    const report = body === null ? null : call.route.readAnswer(body).report;
    await this.parts.settler.end(live, { status: 'error', report });
    const error = upstreamRefusal(
      candidate.upstream,
      answer.status,
      answer.headers['retry-after'],
      body,
    );
    return { error, retryable: isRetryableStatus(answer.status) && !call.client.hasLeft };
  }

  private async relayStreamed(
    call: ReadCall,
    admitted: AdmittedCall,
    live: LiveCall,
    answer: UpstreamAnswer,
    body: Readable,
  ): Promise<void> {
    const { engine, settler, config } = this.parts;
    const { plan, model, price, promptTokens, caller } = admitted;
    const { asked, client } = call;
    const place = this.cuts.add({ abort: () => body.destroy() });
    client.begin(200, {
      ...this.answerHeaders(admitted, answer),
      ...streamHead,
    });
    const taximeter = plan.extendable
      ? new Taximeter(engine, live, {
          reservedTokens: plan.reservedTokens,
          instalmentTokens: model.defaultOutputReserve * asked.choices,
          ceilingTokens: outputCeiling(model, promptTokens) * asked.choices,
          picoPerToken: outputTokenPico(asked, price),
        })
      : null;
    try {
      await relayStream({
        upstream: admitted.candidate.upstream,
        body,
        client,
        reading: call.route.openStream(asked),
        call: live,
        settler,
        taximeter,
        drains: this.drains,
        keepAliveMs: config.STREAM_KEEP_ALIVE_MS,
        docsUrl: config.DOCS_URL,
        describeStop: (violations) => {
          if (violations.length === 0) {
            const error = new WeirError(
              'quota_unavailable',
              'The limits could not be checked while this stream ran on, so it was ended.',
            );
            const { code, message } = error;
            return { message, code, weir: weirPart(error, this.errorContext(call)) };
          }
          const { currency, timeZone } = caller.policy.enterprise;
          const error = limitRefusal(
            { outcome: 'refused', violations, retryAfterMs: null },
            { language: caller.language, currency, timeZone, fittingCap: null },
          );
          return {
            message: error.message,
            code: 'insufficient_quota',
            weir: weirPart(error, this.errorContext(call)),
          };
        },
      });
    } finally {
      this.cuts.remove(place);
    }
  }

  private async relayWhole(
    call: ReadCall,
    admitted: AdmittedCall,
    live: LiveCall,
    answer: UpstreamAnswer,
  ): Promise<void> {
    const { candidate } = admitted;
    let bytes: Buffer;
    try {
      bytes = await readWhole(answer, this.parts.config.ANSWER_LIMIT_BYTES);
    } catch (error) {
      throw failureInBody(candidate.upstream, error);
    }
    const body = parseErrorBody(bytes);
    if (body === null) {
      throw failureInBody(candidate.upstream, new Error('the answer is not a JSON object'));
    }
    live.markFirstToken();
    const { report, delivered } = call.route.readAnswer(body);
    if (report?.hasOutput !== true) {
      const { upstreamModel } = candidate;
      const { tokens } = await this.parts.counter.countText(upstreamModel, delivered());
      live.delivered.addCounted(tokens);
    }
    const status = call.client.hasLeft ? 'cancelled' : 'ok';
    const { remaining, degraded } = admitted.admitted;
    const isRoomy = !degraded && leavesRoom(remaining, admitted.reserve);
    await this.parts.settler.end(live, { status, report }, isRoomy ? 'sent' : 'settled');
    if (call.client.isWaiting) {
      // An upstream that did not stream although it was asked to, and a stream that has begun.
      call.client.begin(200, streamHead);
      call.client.end(sseEvent(JSON.stringify(body)));
      return;
    }
    const headers = this.answerHeaders(admitted, answer);
    headers['content-type'] = 'application/json; charset=utf-8';
    call.client.answer(200, headers, bytes);
  }

  private answerHeaders(
    { admitted, plan, draft, candidate }: AdmittedCall,
    answer: UpstreamAnswer,
  ): Record<string, string> {
    const isAnthropic = candidate.upstream.dialect === 'anthropic';
    const headers = returnedHeaders(answer.headers);
    addLimitHeaders(headers, admitted.remaining);
    if (isAnthropic) {
      addAnthropicLimitHeaders(headers, admitted.remaining, this.parts.clock.now());
      headers['request-id'] = draft.requestId;
    }
    if (plan.forwardedCap !== null) headers['x-weir-output-cap'] = String(plan.forwardedCap);
    if (admitted.degraded) headers['x-weir-degraded'] = 'true';
    return headers;
  }

  /** Headers of an error; those of a refusal tell the limits that refused, as those of an answer do. */
  private headersOf(error: WeirError, { dialect }: MeteredRoute): Record<string, string> {
    const headers = errorHeaders(error);
    const { violations, retry_after_ms: retryAfterMs } = error.details;
    if (!Array.isArray(violations)) return headers;
    const remaining = refusedRemaining(
      violations as readonly Violation[],
      typeof retryAfterMs === 'number' ? retryAfterMs : null,
    );
    addLimitHeaders(headers, remaining);
    if (dialect === 'anthropic') {
      addAnthropicLimitHeaders(headers, remaining, this.parts.clock.now());
    }
    return headers;
  }

  private errorContext({ requestId }: Incoming): ErrorContext {
    return { requestId, docsUrl: this.parts.config.DOCS_URL };
  }

  private recordRefusal(
    { route, requestId }: Incoming,
    policy: CallerPolicy,
    model: string,
    error: WeirError,
  ): void {
    const violation = error.details['violation'] as
      | {
          scope: { level: string; id: string; name: string };
          metric: string;
          window: string | null;
        }
      | undefined;
    const retryAfterMs = error.details['retry_after_ms'];
    const isUpstream = error.details['weir'] !== undefined && violation === undefined;
    this.parts.refusals.record(policy, {
      requestId,
      model,
      route: route.path,
      outcome: isUpstream || error.httpStatus >= 500 ? 'failed' : 'refused',
      code: error.code,
      scope: violation?.scope ?? null,
      metric: violation?.metric ?? null,
      window: violation?.window ?? null,
      retryAfterMs: typeof retryAfterMs === 'number' ? retryAfterMs : null,
    });
  }

  private logFault({ route, requestId }: Incoming, error: WeirError): void {
    if (error.httpStatus < 500) return;
    const level = error.code === 'internal' ? 'error' : 'warn';
    this.parts.logger[level](
      { err: error.cause ?? error, code: error.code, request_id: requestId, route: route.path },
      'a call failed',
    );
  }
}

/** A call that waits longer than a moment is told where it stands; its stream has begun from then on. */
function tellWait({ client, caller, route, requestId }: ReadCall, notice: WaitNotice): void {
  const seconds = (ms: number): number => Math.max(1, Math.ceil(ms / 1_000));
  const text = refusalTexts[caller.language].waiting({
    position: notice.position,
    of: notice.of,
    about: notice.expectedMs === null ? null : seconds(notice.expectedMs),
    atMost: seconds(notice.leftMs),
  });
  const isAnthropic = route.dialect === 'anthropic';
  client.comment(text, { ...streamHead, ...(isAnthropic ? { 'request-id': requestId } : {}) });
}

function secondsSince(startMs: number): number {
  return (performance.now() - startMs) / 1_000;
}

/** Reads a body whole, up to a bound. */
async function readWhole({ body, headers }: UpstreamAnswer, bytesMax: number): Promise<Buffer> {
  const tooLarge = (): Error => new Error(`the answer is larger than ${bytesMax} bytes`);
  if (Number(headers['content-length']) > bytesMax) throw tooLarge();
  if (body instanceof WholeBody) return body.bytes();
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, bytes);
}
