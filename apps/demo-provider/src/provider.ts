import { timingSafeEqual } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { newId, type Clock } from '@weir/domain';
import type { Logger } from '@weir/platform';
import { createTokenCounter, type TokenCounter } from '@weir/tokens';
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { Bill, type BilledCall, type Outcome } from './bill.js';
import { chatCompletions, textCompletions } from './dialects/completions.js';
import {
  BadRequest,
  isObject,
  readString,
  type Dialect,
  type UsageTelling,
} from './dialects/dialect.js';
import { embeddingBody, parseEmbeddingRequest } from './dialects/embeddings.js';
import { messages, readMessagesPrompt } from './dialects/messages.js';
import { responses } from './dialects/responses.js';
import { outputTokens, planGeneration, shownTokens, type Generation } from './generation.js';
import { onClosed } from './on-closed.js';
import { models, modelsByName, type Model } from './price-list.js';
import {
  defaultSettings,
  parseDirectives,
  parseHeaders,
  parsePatch,
  SettingsError,
  type Settings,
  type SettingsPatch,
} from './settings.js';
import { StreamAnswer } from './stream-answer.js';
import { sendWholeAnswer } from './whole-answer.js';

export type ProviderOptions = {
  apiKey: string;
  logger: Logger;
  clock: Clock;
  /** Entries that the bill keeps one by one; its totals are exact beyond that. */
  billEntriesMax?: number;
};

const bodyLimitBytes = 64 * 1024 * 1024;
const entriesPageMax = 10_000;

/** The provider's HTTP server; not listening yet. */
export function createProvider(options: ProviderOptions): FastifyInstance {
  return new Provider(options).server();
}

type ErrorShape = 'openai' | 'anthropic';

class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly type: string,
    message: string,
    readonly code: string | null = null,
    readonly parameter: string | null = null,
  ) {
    super(message);
  }
}

class Provider {
  private readonly bill: Bill;
  private defaults: Settings = defaultSettings;
  private readonly runId = newId().slice(-8);
  private calls = 0;
  private readonly keyBytes: Buffer;
  private readonly counter: TokenCounter;

  constructor(private readonly options: ProviderOptions) {
    this.bill = new Bill(() => options.clock.now(), options.billEntriesMax);
    this.keyBytes = Buffer.from(options.apiKey);
    this.counter = createTokenCounter({
      onFailure: (err) => options.logger.error({ err }, 'a counting thread failed'),
    });
  }

  server(): FastifyInstance {
    const app = fastify({
      logger: false,
      bodyLimit: bodyLimitBytes,
      forceCloseConnections: true,
      return503OnClosing: false,
      keepAliveTimeout: 72_000,
    });
    // Bodies are read by name only, never merged: the poisoning check of Fastify's own parser is not needed.
    app.removeContentTypeParser('application/json');
    app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => {
      try {
        done(null, JSON.parse(String(body)));
      } catch {
        done(new ApiError(400, 'invalid_request_error', 'The body is not valid JSON.'));
      }
    });
    app.setErrorHandler((error, request, reply) => this.refuse(error, request, reply));
    app.setNotFoundHandler((request, reply) =>
      this.refuse(
        new ApiError(
          404,
          'invalid_request_error',
          `Unknown route ${request.method} ${request.url}`,
        ),
        request,
        reply,
      ),
    );
    app.get('/healthz', () => ({ status: 'ok' }));
    app.get('/readyz', () => ({ status: 'ready', reasons: [] }));
    this.addModelRoutes(app);
    this.addCallRoutes(app);
    this.addDemoRoutes(app);
    app.addHook('onClose', () => this.counter.close());
    return app;
  }

  private addModelRoutes(app: FastifyInstance): void {
    const shown = (model: Model) => ({
      id: model.name,
      object: 'model',
      created: 1_700_000_000,
      owned_by: 'weir-demo',
    });
    app.get('/v1/models', (request) => {
      this.authenticate(request);
      return { object: 'list', data: models.map(shown) };
    });
    app.get<{ Params: { name: string } }>('/v1/models/:name', (request) => {
      this.authenticate(request);
      return shown(this.modelNamed(request.params.name));
    });
  }

  private addCallRoutes(app: FastifyInstance): void {
    const routes: readonly (readonly [path: string, dialect: Dialect])[] = [
      ['/v1/chat/completions', chatCompletions],
      ['/v1/completions', textCompletions],
      ['/v1/responses', responses],
      ['/v1/messages', messages],
    ];
    for (const [path, dialect] of routes) {
      app.post(path, { config: { isBilled: true } }, (request, reply) =>
        this.answerText(dialect, request, reply),
      );
    }
    app.post('/v1/embeddings', { config: { isBilled: true } }, (request, reply) =>
      this.answerEmbeddings(request, reply),
    );
    app.post('/v1/messages/count_tokens', async (request) => {
      this.authenticate(request);
      const body = bodyOf(request);
      const { name } = this.modelNamed(readString(body, 'model').split('#', 1)[0] ?? '');
      // Throws where the messages are wrong.
      readMessagesPrompt(body);
      const { tokens } = await messages.countPrompt(this.counter, name, body);
      return { input_tokens: tokens };
    });
  }

  private addDemoRoutes(app: FastifyInstance): void {
    app.get('/demo/settings', (request) => {
      this.authenticate(request);
      return this.defaults;
    });
    app.post('/demo/settings', (request) => {
      this.authenticate(request);
      this.defaults = merge(this.defaults, parsePatch(request.body));
      return this.defaults;
    });
    app.delete('/demo/settings', (request) => {
      this.authenticate(request);
      this.defaults = defaultSettings;
      return this.defaults;
    });
    app.get<{ Querystring: { since?: string } }>('/demo/bill', (request) => {
      this.authenticate(request);
      const { since } = request.query;
      if (since === undefined) return this.bill.report();
      const report = this.bill.reportSince(
        /^\d+$/.test(since) ? Number(since) : this.bill.seqBefore(instantOf(since)),
      );
      if (report === undefined) {
        throw new ApiError(
          410,
          'invalid_request_error',
          'Entries since then are no longer kept one by one.',
        );
      }
      return report;
    });
    app.get<{ Querystring: { limit?: string; after?: string } }>(
      '/demo/bill/entries',
      (request) => {
        this.authenticate(request);
        const limit = wholeNumber(request.query.limit ?? '100', 'limit', 1, entriesPageMax);
        const after = wholeNumber(request.query.after ?? '0', 'after', 0, Number.MAX_SAFE_INTEGER);
        const entries = this.bill.entries(limit, after);
        return { entries, next_after: entries.at(-1)?.seq ?? after };
      },
    );
    app.post('/demo/bill/reset', (request) => {
      this.authenticate(request);
      this.bill.reset();
      return this.bill.report();
    });
  }

  private async answerText(
    dialect: Dialect,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<void> {
    this.authenticate(request);
    const body = bodyOf(request);
    const asked = dialect.parse(body);
    const [modelName = '', suffix] = splitOnce(asked.model, '#');
    const model = this.modelNamed(modelName);
    if (model.kind !== 'text') throw new BadRequest(`${model.name} does not write text`, 'model');
    const settings = this.settingsOf(request, asked.directives, suffix);
    const id = this.nextId(dialect.idPrefix);
    const fault = this.faultOf(settings);
    const promptTokens =
      settings.prompt_tokens ?? (await dialect.countPrompt(this.counter, model.name, body)).tokens;
    const generation = planGeneration({
      id,
      nowMs: this.options.clock.now(),
      model,
      promptText: asked.promptText,
      promptTokens,
      choices: asked.choices,
      maxTokens: asked.maxTokens,
      settings,
    });
    const call = billedCallOf(request, generation, asked.stream);
    const response = reply.raw;
    reply.hijack();
    if (this.failsBeforeHeaders(response, fault, settings, call, errorShapeOf(request))) return;

    const telling = usageTelling(settings, fault, asked.stream ? asked.includeUsage : true);
    const answer = asked.stream
      ? (): void => {
          response.writeHead(200, { ...commonHeaders(generation.id), ...streamHeaders });
          response.flushHeaders();
          const events = dialect.stream(generation, telling);
          const onEnd = (output: number, outcome: Outcome): void =>
            this.bill.add({ ...call, outputTokens: output, outcome });
          new StreamAnswer(response, generation, events, settings, fault, onEnd).start();
        }
      : (): void => {
          const delayMs = wholeDelayMs(settings, generation);
          this.sendWhole(
            response,
            dialect.body(generation, telling),
            delayMs,
            fault,
            call,
            generation,
          );
        };
    this.afterHeadersDelay(response, settings, call, answer);
  }

  private async answerEmbeddings(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    this.authenticate(request);
    const asked = parseEmbeddingRequest(bodyOf(request));
    const [modelName = '', suffix] = splitOnce(asked.model, '#');
    const model = this.modelNamed(modelName);
    if (model.kind !== 'embedding') throw new BadRequest(`${model.name} does not embed`, 'model');
    const settings = this.settingsOf(request, asked.directives, suffix);
    const id = this.nextId('embd-');
    const fault = this.faultOf(settings);
    const promptTokens =
      settings.prompt_tokens ?? (await this.counter.countText(model.name, asked.inputs)).tokens;
    const call: BilledCall = {
      id,
      requestId: requestIdOf(request),
      model,
      promptTokens,
      cachedTokens: 0,
      outputTokens: 0,
      streamed: false,
      outcome: 'finished',
    };
    const response = reply.raw;
    reply.hijack();
    if (this.failsBeforeHeaders(response, fault, settings, call, 'openai')) return;
    const telling = usageTelling(settings, fault, true);
    const usage = { prompt_tokens: promptTokens, total_tokens: promptTokens };
    const body = embeddingBody(
      asked,
      model,
      telling === 'omitted' ? undefined : telling === 'null' ? null : usage,
    );
    this.afterHeadersDelay(response, settings, call, () => {
      this.sendWhole(response, body, settings.first_token_delay_ms, fault, call);
    });
  }

  private sendWhole(
    response: ServerResponse,
    body: string,
    delayMs: number,
    fault: Settings['fault'],
    call: BilledCall,
    generation?: Generation,
  ): void {
    if (fault === 'error_event_mid_stream') {
      // There is no stream to put an error event into: the generation fails and is not billed.
      this.bill.add({ ...call, ...nothingUsed, outcome: 'fault' });
      sendError(
        response,
        call.id,
        'openai',
        new ApiError(500, 'server_error', 'The server had an error while processing your request'),
      );
      return;
    }
    for (const [name, value] of Object.entries(commonHeaders(call.id)))
      response.setHeader(name, value);
    response.setHeader('content-type', 'application/json');
    const output = generation === undefined ? 0 : outputTokens(generation);
    // Of an answer that breaks off nothing can be read: its output is not billed.
    sendWholeAnswer(response, body, delayMs, fault, (outcome) =>
      this.bill.add({ ...call, outputTokens: outcome === 'fault' ? 0 : output, outcome }),
    );
  }

  /** Faults after which there is no answer to generate; nothing is billed for them. */
  private failsBeforeHeaders(
    response: ServerResponse,
    fault: Settings['fault'],
    settings: Settings,
    call: BilledCall,
    shape: ErrorShape,
  ): boolean {
    const unbilled: BilledCall = { ...call, ...nothingUsed, outcome: 'fault' };
    if (fault === 'connect_reset') {
      this.bill.add(unbilled);
      response.socket?.resetAndDestroy();
      return true;
    }
    if (fault === 'hang_before_headers') {
      onClosed(response, () => this.bill.add(unbilled));
      return true;
    }
    if (!fault.startsWith('status:')) return false;
    const status = Number(fault.slice('status:'.length));
    this.bill.add(unbilled);
    if (settings.retry_after_seconds !== null)
      response.setHeader('retry-after', settings.retry_after_seconds);
    sendError(
      response,
      call.id,
      shape,
      new ApiError(status, errorTypeOf(status), `The demo provider was told to answer ${status}.`),
    );
    return true;
  }

  private afterHeadersDelay(
    response: ServerResponse,
    settings: Settings,
    call: BilledCall,
    answer: () => void,
  ): void {
    if (settings.headers_delay_ms === 0) {
      answer();
      return;
    }
    let begun = false;
    const timer = setTimeout(() => {
      begun = true;
      answer();
    }, settings.headers_delay_ms);
    onClosed(response, () => {
      if (begun) return;
      clearTimeout(timer);
      this.bill.add({ ...call, ...nothingUsed, outcome: 'client_aborted' });
    });
  }

  /** The model's suffix wins over the body's field, that over headers, those over the defaults. */
  private settingsOf(
    request: FastifyRequest,
    directives: string | undefined,
    suffix: string | undefined,
  ): Settings {
    const headers = parseHeaders(request.headers);
    let settings = this.defaults;
    if (headers !== undefined) settings = merge(settings, headers);
    if (directives !== undefined) settings = merge(settings, parseDirectives(directives));
    if (suffix !== undefined) settings = merge(settings, parseDirectives(suffix));
    return settings;
  }

  private faultOf(settings: Settings): Settings['fault'] {
    return this.calls % settings.fault_every === 0 ? settings.fault : 'none';
  }

  private nextId(prefix: string): string {
    this.calls += 1;
    return `${prefix}${this.runId}${this.calls.toString(36).padStart(8, '0')}`;
  }

  private modelNamed(name: string): Model {
    const model = modelsByName.get(name);
    if (model !== undefined) return model;
    throw new ApiError(
      404,
      'invalid_request_error',
      `The model ${name} does not exist.`,
      'model_not_found',
      'model',
    );
  }

  private authenticate(request: FastifyRequest): void {
    const { authorization } = request.headers;
    const bearer =
      authorization?.startsWith('Bearer ') === true
        ? authorization.slice('Bearer '.length)
        : undefined;
    const given = Buffer.from(bearer ?? String(request.headers['x-api-key'] ?? ''));
    if (given.length === this.keyBytes.length && timingSafeEqual(given, this.keyBytes)) return;
    throw new ApiError(
      401,
      'authentication_error',
      'Incorrect API key provided.',
      'invalid_api_key',
    );
  }

  private refuse(thrown: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const error = toApiError(thrown);
    const isBilled = (request.routeOptions.config as { isBilled?: boolean }).isBilled === true;
    const id = this.nextId('req_');
    if (error.status >= 500) this.options.logger.error({ err: thrown, id }, 'request failed');
    if (isBilled) {
      const requestId = requestIdOf(request);
      this.bill.add({
        id,
        requestId,
        model: null,
        ...nothingUsed,
        streamed: false,
        outcome: 'refused',
      });
    }
    reply.hijack();
    sendError(reply.raw, id, errorShapeOf(request), error);
  }
}

const nothingUsed = { promptTokens: 0, cachedTokens: 0, outputTokens: 0 } as const;

const streamHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
} as const;

function commonHeaders(id: string): Record<string, string> {
  return {
    'x-request-id': id,
    'openai-processing-ms': '1',
    // Limits of the provider's own, which a gateway must not pass on as its tenant's.
    'x-ratelimit-limit-requests': '10000',
    'x-ratelimit-remaining-requests': '9999',
  };
}

function billedCallOf(
  request: FastifyRequest,
  generation: Generation,
  streamed: boolean,
): BilledCall {
  return {
    id: generation.id,
    requestId: requestIdOf(request),
    model: generation.model,
    promptTokens: generation.promptTokens,
    cachedTokens: generation.cachedTokens,
    outputTokens: 0,
    streamed,
    outcome: 'finished',
  };
}

function wholeDelayMs(settings: Settings, generation: Generation): number {
  const { first_token_delay_ms, tokens_per_second } = settings;
  if (tokens_per_second === 0) return first_token_delay_ms;
  const tokens = generation.reasoningTokens + shownTokens(generation);
  return first_token_delay_ms + (tokens * 1_000) / tokens_per_second;
}

function usageTelling(
  settings: Settings,
  fault: Settings['fault'],
  isAsked: boolean,
): UsageTelling {
  if (fault === 'usage_null') return 'null';
  if (settings.usage === 'never') return 'omitted';
  if (settings.usage === 'auto' && !isAsked) return 'omitted';
  return fault === 'usage_twice' ? 'twice' : 'once';
}

function merge(settings: Settings, patch: SettingsPatch): Settings {
  return { ...settings, ...(patch as Partial<Settings>) };
}

function bodyOf(request: FastifyRequest): Record<string, unknown> {
  if (isObject(request.body)) return request.body;
  throw new BadRequest('The body must be a JSON object.');
}

function requestIdOf(request: FastifyRequest): string | null {
  const value = request.headers['x-request-id'];
  return typeof value === 'string' ? value.slice(0, 128) : null;
}

function splitOnce(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator);
  return at === -1 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

function instantOf(text: string): number {
  const instantMs = Date.parse(text);
  if (Number.isNaN(instantMs))
    throw new BadRequest('since must be a sequence number or an ISO instant', 'since');
  return instantMs;
}

function wholeNumber(text: string, name: string, min: number, max: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= min && value <= max) return value;
  throw new BadRequest(`${name} must be a whole number from ${min} to ${max}`, name);
}

function toApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  if (thrown instanceof BadRequest) {
    return new ApiError(400, 'invalid_request_error', thrown.message, null, thrown.parameter);
  }
  if (thrown instanceof SettingsError)
    return new ApiError(400, 'invalid_request_error', thrown.message);
  const status: unknown =
    thrown instanceof Error && 'statusCode' in thrown ? thrown.statusCode : undefined;
  if (thrown instanceof Error && typeof status === 'number' && status >= 400 && status < 500) {
    return new ApiError(status, 'invalid_request_error', thrown.message);
  }
  return new ApiError(500, 'server_error', 'The demo provider failed.');
}

function errorTypeOf(status: number): string {
  if (status === 429) return 'rate_limit_error';
  if (status === 401) return 'authentication_error';
  return status >= 500 ? 'server_error' : 'invalid_request_error';
}

function errorShapeOf(request: FastifyRequest): ErrorShape {
  return request.url.startsWith('/v1/messages') ? 'anthropic' : 'openai';
}

function sendError(response: ServerResponse, id: string, shape: ErrorShape, error: ApiError): void {
  const { type, message, code, parameter: param } = error;
  const body = JSON.stringify(
    shape === 'anthropic'
      ? { type: 'error', error: { type, message }, request_id: id }
      : { error: { message, type, param, code } },
  );
  response.writeHead(error.status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'x-request-id': id,
  });
  response.end(body);
}
