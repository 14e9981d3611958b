import type { TokenCounter } from '@weir/tokens';
import { sseEvent, type SseEvent } from '../relay/sse-splitter.js';
import {
  invalidField,
  optionalArray,
  optionalBoolean,
  optionalInteger,
  optionalObject,
  requiredMessages,
  requiredModel,
} from '../request/fields.js';
import { isJsonObject, type JsonObject } from '../request/json-body.js';
import type {
  AskedCall,
  DeliveredPiece,
  EarlyEnd,
  EventVerdict,
  MeteredRoute,
  StreamReading,
  UsageReport,
} from './metered-route.js';
import { readOpenAiUsage, writeOpenAiUsage } from './openai-usage.js';

/** OpenAI allows up to 128 answers per request. */
const choicesMax = 128;
const capMax = Number.MAX_SAFE_INTEGER;

/** POST /v1/chat/completions (OpenAI API reference, "Chat"). */
export const chatCompletions: MeteredRoute = {
  path: '/v1/chat/completions',
  dialect: 'openai',
  modelKind: 'chat',
  upstreamPath: '/chat/completions',

  read(body) {
    const model = requiredModel(body);
    const messages = requiredMessages(body);
    const maxTokens = optionalInteger(body, 'max_tokens', { min: 1, max: capMax });
    const maxCompletion = optionalInteger(body, 'max_completion_tokens', { min: 1, max: capMax });
    const choices = optionalInteger(body, 'n', { min: 1, max: choicesMax }) ?? 1;
    const streamed = optionalBoolean(body, 'stream');
    optionalArray(body, 'tools');
    const wantsStreamUsage = readStreamOptions(body, streamed);
    return {
      model,
      streamed,
      outputCap: largerCap(maxTokens, maxCompletion),
      capParam: maxCompletion === null ? 'max_tokens' : 'max_completion_tokens',
      choices,
      wantsStreamUsage,
      media: {
        audioInput: hasPart(messages, 'input_audio'),
        imageInput: hasPart(messages, 'image_url'),
        audioOutput: optionalArray(body, 'modalities')?.includes('audio') ?? false,
      },
      addsStoredContext: false,
    };
  },

  countPrompt: (counter: TokenCounter, model, body) =>
    counter.countChat(model, body as JsonObject & { messages: readonly unknown[] }),

  upstreamBody(body, { upstreamModel, outputCap }) {
    const sent: Record<string, unknown> = { ...body, model: upstreamModel };
    if (body['stream'] === true) {
      sent['stream_options'] = { ...optionalObject(body, 'stream_options'), include_usage: true };
    }
    if (outputCap !== null) lowerCaps(sent, outputCap);
    return sent;
  },

  readAnswer: (answer) => ({
    report: readOpenAiUsage(answer['usage']),
    delivered: choicesOf(answer).flatMap((choice, position) => {
      const texts = isJsonObject(choice['message']) ? textsOf(choice['message']) : [];
      return texts.map((text) => ({ choice: indexOf(choice, position), text }));
    }),
  }),

  openStream: (asked) => new ChatStream(asked),
};

export function largerCap(left: number | null, right: number | null): number | null {
  if (left === null || right === null) return left ?? right;
  return Math.max(left, right);
}

/** Whether usage is wanted in the stream. @throws WeirError where `stream_options` makes no sense. */
export function readStreamOptions(body: JsonObject, streamed: boolean): boolean {
  const options = optionalObject(body, 'stream_options');
  if (options === null) return false;
  if (!streamed) {
    throw invalidField(
      'stream_options',
      '"stream_options" is only allowed with "stream": true. Leave it out or stream.',
    );
  }
  const wanted = options['include_usage'];
  if (wanted !== undefined && wanted !== null && typeof wanted !== 'boolean') {
    throw invalidField(
      'stream_options.include_usage',
      '"stream_options.include_usage" must be true or false.',
    );
  }
  return wanted === true;
}

/** Lowers whichever caps the caller set; sets the current name of the field where there is none. */
function lowerCaps(body: Record<string, unknown>, cap: number): void {
  let found = false;
  for (const field of ['max_tokens', 'max_completion_tokens']) {
    const value = body[field];
    if (typeof value !== 'number') continue;
    body[field] = Math.min(value, cap);
    found = true;
  }
  if (!found) body['max_completion_tokens'] = cap;
}

function hasPart(messages: readonly JsonObject[], type: string): boolean {
  return messages.some((message) => {
    const content = message['content'];
    return (
      Array.isArray(content) && content.some((part) => isJsonObject(part) && part['type'] === type)
    );
  });
}

function choicesOf(value: JsonObject): JsonObject[] {
  const choices = value['choices'];
  return Array.isArray(choices) ? choices.filter(isJsonObject) : [];
}

function indexOf(choice: JsonObject, position: number): number {
  const index = choice['index'];
  return typeof index === 'number' && Number.isInteger(index) && index >= 0 && index < choicesMax
    ? index
    : position;
}

/** All that a message or delta says: text, refusal, reasoning where upstreams show it, and tool calls. */
function textsOf(message: JsonObject): string[] {
  const texts: string[] = [];
  for (const field of ['content', 'refusal', 'reasoning_content', 'reasoning']) {
    const value = message[field];
    if (typeof value === 'string' && value !== '') texts.push(value);
  }
  const calls = message['tool_calls'];
  if (Array.isArray(calls)) {
    for (const call of calls) addFunctionTexts(texts, isJsonObject(call) ? call['function'] : null);
  }
  addFunctionTexts(texts, message['function_call']);
  return texts;
}

function addFunctionTexts(texts: string[], called: unknown): void {
  if (!isJsonObject(called)) return;
  for (const field of ['name', 'arguments']) {
    const value = called[field];
    if (typeof value === 'string' && value !== '') texts.push(value);
  }
}

class ChatStream implements StreamReading {
  private lastReport: UsageReport | null = null;
  private done = false;
  private errored = false;
  private readonly finishedChoices = new Set<number>();
  private readonly openChoices = new Set<number>();
  private head: JsonObject = {};

  constructor(private readonly asked: AskedCall) {}

  get complete(): boolean {
    return this.done || (this.finishedChoices.size > 0 && this.openChoices.size === 0);
  }

  get failed(): boolean {
    return this.errored;
  }

  report(): UsageReport | null {
    return this.lastReport;
  }

  read(event: SseEvent, deliver: (piece: DeliveredPiece) => void): EventVerdict {
    if (event.data === null) return 'forward';
    if (event.data.trim() === '[DONE]') {
      this.done = true;
      return 'last';
    }
    const chunk = parseChunk(event.data);
    if (chunk === null) return 'forward';
    if (isJsonObject(chunk['error']) || event.name === 'error') {
      this.errored = true;
      return 'forward';
    }
    const report = readOpenAiUsage(chunk['usage']);
    if (report !== null) this.lastReport = report;
    const choices = choicesOf(chunk);
    if (choices.length > 0) this.head = chunk;
    for (const [position, choice] of choices.entries()) {
      const index = indexOf(choice, position);
      if (typeof choice['finish_reason'] === 'string') {
        this.finishedChoices.add(index);
        this.openChoices.delete(index);
      } else if (!this.finishedChoices.has(index)) {
        this.openChoices.add(index);
      }
      if (!isJsonObject(choice['delta'])) continue;
      for (const text of textsOf(choice['delta'])) deliver({ choice: index, text });
    }
    // Only the chunk that exists for the usage's sake is kept back: one with choices belongs to the client.
    const isExtra = report !== null && choices.length === 0;
    return isExtra && !this.asked.wantsStreamUsage ? 'hide' : 'forward';
  }

  endEarly({ message, code, usage, weir }: EarlyEnd): string {
    const { id, created, model } = this.head;
    const head = { id, object: 'chat.completion.chunk', created, model };
    const open = this.openChoices.size > 0 ? [...this.openChoices] : [0];
    const choices = open.map((index) => ({ index, delta: {}, finish_reason: 'length' }));
    const last = sseEvent(JSON.stringify({ ...head, choices, weir: { ...weir, code, message } }));
    const usageChunk = this.asked.wantsStreamUsage
      ? sseEvent(JSON.stringify({ ...head, choices: [], usage: writeOpenAiUsage(usage) }))
      : '';
    return `${last}${usageChunk}${sseEvent('[DONE]')}`;
  }

  failure(message: string, code: string, requestId: string): string {
    const error = { message, type: 'server_error', param: null, code };
    return sseEvent(JSON.stringify({ error: { ...error, weir: { request_id: requestId } } }));
  }
}

function parseChunk(data: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(data);
    return isJsonObject(value) ? value : null;
  } catch {
    // Not ours to judge: the client gets the bytes as they came.
    return null;
  }
}
