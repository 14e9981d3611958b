import { noTokens, type TokenUsage } from '@weir/domain';
import { sseEvent, type SseEvent } from '../relay/sse-splitter.js';
import {
  invalidField,
  optionalArray,
  optionalBoolean,
  optionalInteger,
  requiredMessages,
  requiredModel,
} from '../request/fields.js';
import { isJsonObject, type JsonObject } from '../request/json-body.js';
import { lowerCap } from './chat-completions.js';
import { parseChunk } from './choice-stream.js';
import {
  noMedia,
  type DeliveredPiece,
  type EarlyEnd,
  type EventVerdict,
  type MeteredRoute,
  type StreamReading,
  type UsageReport,
} from './metered-route.js';
import { countIn, objectIn } from './openai-usage.js';

/** POST /v1/messages (Anthropic API reference, "Messages"). */
export const messages: MeteredRoute = {
  path: '/v1/messages',
  dialect: 'anthropic',
  modelKind: 'chat',
  upstreamPath: '/messages',

  read(body) {
    const model = requiredModel(body);
    const asked = requiredMessages(body);
    const outputCap = optionalInteger(body, 'max_tokens', { min: 1, max: Number.MAX_SAFE_INTEGER });
    if (outputCap === null) {
      throw invalidField(
        'max_tokens',
        '"max_tokens" is missing. Give the most tokens that the answer may have.',
      );
    }
    optionalArray(body, 'tools');
    return {
      model,
      streamed: optionalBoolean(body, 'stream'),
      outputCap,
      capParam: 'max_tokens',
      choices: 1,
      wantsStreamUsage: true,
      media: { ...noMedia, imageInput: asked.some(hasImage) },
      addsStoredContext: false,
    };
  },

  countPrompt: (counter, model, body) =>
    counter.countMessages(model, body as JsonObject & { messages: readonly unknown[] }),

  upstreamBody(body, { upstreamModel, outputCap }) {
    const sent: Record<string, unknown> = { ...body, model: upstreamModel };
    if (outputCap !== null) lowerCap(sent, 'max_tokens', outputCap);
    return sent;
  },

  readAnswer: (answer) => ({
    report: readAnthropicUsage(answer['usage'], null),
    delivered: () => blockTexts(answer['content']),
  }),

  openStream: () => new MessageStream(),
};

function hasImage(message: JsonObject): boolean {
  const content = message['content'];
  return (
    Array.isArray(content) && content.some((part) => isJsonObject(part) && part['type'] === 'image')
  );
}

function blockTexts(content: unknown): string[] {
  if (!Array.isArray(content)) return [];
  return content.filter(isJsonObject).flatMap((block) => {
    const values = [block['text'], block['thinking'], block['name']];
    if (block['input'] !== undefined) values.push(JSON.stringify(block['input']));
    return values.filter((value): value is string => typeof value === 'string' && value !== '');
  });
}

/**
 * Anthropic's usage as a partition: its `input_tokens` leave cached tokens out, unlike OpenAI's. Cache writes come as
 * `cache_creation_input_tokens`, or split by lifetime under `cache_creation` ("Prompt caching", "Tracking performance").
 * Fields that an event leaves out keep what an earlier one said: numbers are cumulative.
 */
export function readAnthropicUsage(value: unknown, before: UsageReport | null): UsageReport | null {
  if (!isJsonObject(value)) return before;
  const input = countIn(value, 'input_tokens');
  const output = countIn(value, 'output_tokens');
  if (input === null && output === null) return before;
  const split = objectIn(value, 'cache_creation');
  const splitWrite =
    split === null
      ? null
      : (countIn(split, 'ephemeral_5m_input_tokens') ?? 0) +
        (countIn(split, 'ephemeral_1h_input_tokens') ?? 0);
  const known = before?.usage ?? noTokens;
  const usage: TokenUsage = {
    ...known,
    input: input ?? known.input,
    cachedInput: countIn(value, 'cache_read_input_tokens') ?? known.cachedInput,
    cacheWrite: countIn(value, 'cache_creation_input_tokens') ?? splitWrite ?? known.cacheWrite,
    output: output ?? known.output,
  };
  return {
    usage,
    hasInput: input !== null || before?.hasInput === true,
    hasOutput: output !== null || before?.hasOutput === true,
    clamped: false,
  };
}

class MessageStream implements StreamReading {
  private lastReport: UsageReport | null = null;
  private isOver = false;
  private errored = false;
  private openBlock: number | null = null;

  get complete(): boolean {
    return this.isOver;
  }

  get failed(): boolean {
    return this.errored;
  }

  report(): UsageReport | null {
    return this.lastReport;
  }

  read(event: SseEvent, deliver: (piece: DeliveredPiece) => void): EventVerdict {
    const chunk = event.data === null ? null : parseChunk(event.data);
    if (chunk === null) return 'forward';
    switch (chunk['type']) {
      case 'message_start': {
        const message = objectIn(chunk, 'message');
        const report = readAnthropicUsage(message?.['usage'], null);
        // The output that is named here is only what the answer begins with.
        if (report !== null) this.lastReport = { ...report, hasOutput: false };
        return 'forward';
      }
      case 'message_delta':
        this.lastReport = readAnthropicUsage(chunk['usage'], this.lastReport);
        return 'forward';
      case 'content_block_start': {
        this.openBlock = indexOfBlock(chunk);
        const block = objectIn(chunk, 'content_block');
        const name = block?.['name'];
        if (typeof name === 'string') deliver({ choice: this.openBlock, text: name });
        return 'forward';
      }
      case 'content_block_delta': {
        const delta = objectIn(chunk, 'delta');
        for (const field of ['text', 'partial_json', 'thinking']) {
          const text = delta?.[field];
          if (typeof text === 'string' && text !== '') {
            deliver({ choice: indexOfBlock(chunk), text });
          }
        }
        return 'forward';
      }
      case 'content_block_stop':
        this.openBlock = null;
        return 'forward';
      case 'error':
        this.errored = true;
        return 'forward';
      case 'message_stop':
        this.isOver = true;
        return 'last';
      default:
        return 'forward';
    }
  }

  endEarly({ message, code, usage, weir }: EarlyEnd): string {
    const stop =
      this.openBlock === null ? '' : named({ type: 'content_block_stop', index: this.openBlock });
    return (
      stop +
      named({
        type: 'message_delta',
        delta: { stop_reason: 'max_tokens', stop_sequence: null },
        usage: { output_tokens: usage.output },
        weir: { ...weir, code, message },
      }) +
      named({ type: 'message_stop' })
    );
  }

  failure(body: JsonObject): string {
    return named({ ...body, type: 'error' });
  }
}

function named(data: { type: string } & Record<string, unknown>): string {
  return sseEvent(JSON.stringify(data), data.type);
}

function indexOfBlock(chunk: JsonObject): number {
  const index = chunk['index'];
  return typeof index === 'number' && index >= 0 && index < 1_024 ? index : 0;
}
