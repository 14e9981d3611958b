import type { TokenCounter } from '@weir/tokens';
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
import { choicesMax, choicesOf, ChoiceStream } from './choice-stream.js';
import type { MeteredRoute } from './metered-route.js';
import { readOpenAiUsage } from './openai-usage.js';

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
    delivered: () =>
      choicesOf(answer).flatMap((choice) =>
        isJsonObject(choice['message']) ? textsOf(choice['message']) : [],
      ),
  }),

  openStream: (asked) =>
    new ChoiceStream(asked, {
      object: 'chat.completion.chunk',
      textsOf: (choice) => (isJsonObject(choice['delta']) ? textsOf(choice['delta']) : []),
      lastChoice: (index) => ({ index, delta: {}, finish_reason: 'length' }),
    }),
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
  const set = ['max_tokens', 'max_completion_tokens'].filter(
    (field) => typeof body[field] === 'number',
  );
  for (const field of set.length > 0 ? set : ['max_completion_tokens']) lowerCap(body, field, cap);
}

/** Sets a cap, or lowers the one that is there. */
export function lowerCap(body: Record<string, unknown>, field: string, cap: number): void {
  const value = body[field];
  body[field] = typeof value === 'number' ? Math.min(value, cap) : cap;
}

function hasPart(messages: readonly JsonObject[], type: string): boolean {
  return messages.some((message) => {
    const content = message['content'];
    return (
      Array.isArray(content) && content.some((part) => isJsonObject(part) && part['type'] === type)
    );
  });
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
