import type { MessagesBody } from '@weir/tokens';
import { choiceText, outputTokens, type Generation } from '../generation.js';
import {
  BadRequest,
  maxTokensLimit,
  namedEvent,
  PromptReader,
  readCount,
  readDirectives,
  readFlag,
  readString,
  type Dialect,
  type StreamEvents,
  type UsageTelling,
} from './dialect.js';

/** Anthropic's `input_tokens` leave the cached ones out, unlike OpenAI's `prompt_tokens`. */
function usageOf(generation: Generation, output: number): object {
  return {
    input_tokens: generation.promptTokens - generation.cachedTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: generation.cachedTokens,
    output_tokens: output,
    service_tier: 'standard',
  };
}

function usageField(generation: Generation, usage: UsageTelling, output: number): object {
  if (usage === 'omitted') return {};
  return { usage: usage === 'null' ? null : usageOf(generation, output) };
}

const stopReason = (generation: Generation): string =>
  generation.cutByMaxTokens ? 'max_tokens' : 'end_turn';

function message(generation: Generation, more: object): object {
  return {
    id: generation.id,
    type: 'message',
    role: 'assistant',
    model: generation.model.name,
    ...more,
  };
}

class MessageEvents implements StreamEvents {
  constructor(
    private readonly generation: Generation,
    private readonly usage: UsageTelling,
  ) {}

  opening(): string {
    const begun = message(this.generation, {
      content: [],
      stop_reason: null,
      stop_sequence: null,
      ...usageField(this.generation, this.usage, 0),
    });
    return (
      namedEvent({ type: 'message_start', ...{ message: begun } }) +
      namedEvent({
        type: 'content_block_start',
        ...{ index: 0, content_block: { type: 'text', text: '' } },
      }) +
      namedEvent({ type: 'ping' })
    );
  }

  tokens(from: number, to: number): string {
    const text = this.generation.prose.text(this.generation.start, from, to);
    return `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":${JSON.stringify(text)}}}\n\n`;
  }

  malformed(): string {
    return 'event: content_block_delta\ndata: {"type":"content_block_del\n\n';
  }

  error(): string {
    return namedEvent({
      type: 'error',
      ...{ error: { type: 'overloaded_error', message: 'Overloaded' } },
    });
  }

  closing(): string {
    const output = outputTokens(this.generation);
    let events = namedEvent({ type: 'content_block_stop', ...{ index: 0 } });
    if (this.usage === 'twice') events += this.delta(Math.floor(output / 2), null);
    events += this.delta(output, stopReason(this.generation));
    return events + namedEvent({ type: 'message_stop' });
  }

  private delta(output: number, stop_reason: string | null): string {
    const fields = {
      delta: { stop_reason, stop_sequence: null },
      ...usageField(this.generation, this.usage, output),
    };
    return namedEvent({ type: 'message_delta', ...fields });
  }
}

/** POST /v1/messages */
export const messages: Dialect = {
  idPrefix: 'msg_',
  countPrompt: (counter, model, body) =>
    counter.countMessages(model, body as MessagesBody & Record<string, unknown>),

  parse(body) {
    const model = readString(body, 'model');
    const maxTokens = readCount(body, 'max_tokens', maxTokensLimit);
    if (maxTokens === undefined) throw new BadRequest('max_tokens is required', 'max_tokens');
    return {
      model,
      promptText: readMessagesPrompt(body),
      choices: 1,
      maxTokens,
      stream: readFlag(body, 'stream'),
      includeUsage: true,
      directives: readDirectives(body),
    };
  },

  body(generation, usage) {
    return JSON.stringify(
      message(generation, {
        content: [{ type: 'text', text: choiceText(generation) }],
        stop_reason: stopReason(generation),
        stop_sequence: null,
        ...usageField(generation, usage, outputTokens(generation)),
      }),
    );
  },

  stream: (generation, usage) => new MessageEvents(generation, usage),
};

/** @throws BadRequest */
export function readMessagesPrompt(body: Record<string, unknown>): string {
  return new PromptReader()
    .content(body['system'])
    .messages(body['messages'], 'messages')
    .json(body['tools'])
    .read();
}
