import type { ChatBody, CountableInput } from '@weir/tokens';
import { choiceText, type Generation } from '../generation.js';
import {
  choicesLimit,
  dataEvent,
  isObject,
  maxTokensLimit,
  PromptReader,
  readCount,
  readDirectives,
  readFlag,
  readString,
  type Dialect,
  type StreamEvents,
  type TextRequest,
  type UsageTelling,
  BadRequest,
} from './dialect.js';
import { completionUsage } from './openai-usage.js';

/** Where chat and the older text completions differ; the rest is the same. */
type Flavour = {
  idPrefix: string;
  object: string;
  chunkObject: string;
  readPrompt(body: Record<string, unknown>): { reader: PromptReader; prompts: number };
  countPrompt: Dialect['countPrompt'];
  choice(index: number, text: string, finishReason: string): object;
  /** First event of a choice, or none. */
  opener(index: number): object | undefined;
  /** JSON of a choice up to the text, and after it. */
  around(index: number): readonly [before: string, after: string];
  closer(index: number, finishReason: string): object;
};

const chatFlavour: Flavour = {
  idPrefix: 'chatcmpl-',
  object: 'chat.completion',
  chunkObject: 'chat.completion.chunk',
  readPrompt(body) {
    const reader = new PromptReader().messages(body['messages'], 'messages').json(body['tools']);
    return { reader, prompts: 1 };
  },
  countPrompt: (counter, model, body) =>
    counter.countChat(model, body as ChatBody & Record<string, unknown>),
  choice: (index, content, finish_reason) => ({
    index,
    message: { role: 'assistant', content, refusal: null, annotations: [] },
    logprobs: null,
    finish_reason,
  }),
  opener: (index) => ({
    index,
    delta: { role: 'assistant', content: '', refusal: null },
    logprobs: null,
    finish_reason: null,
  }),
  around: (index) => [
    `{"index":${index},"delta":{"content":`,
    '},"logprobs":null,"finish_reason":null}',
  ],
  closer: (index, finish_reason) => ({ index, delta: {}, logprobs: null, finish_reason }),
};

const textFlavour: Flavour = {
  idPrefix: 'cmpl-',
  object: 'text_completion',
  chunkObject: 'text_completion',
  readPrompt(body) {
    const value = body['prompt'];
    const reader = new PromptReader();
    if (typeof value === 'string') return { reader: reader.content(value), prompts: 1 };
    if (!Array.isArray(value) || value.length === 0)
      throw new BadRequest('prompt must be a text or a list', 'prompt');
    const items: unknown[] = value;
    if (items.every((item) => typeof item === 'number')) {
      return { reader, prompts: 1 };
    }
    for (const item of items) {
      const isTokens = Array.isArray(item) && item.every((token) => typeof token === 'number');
      if (typeof item !== 'string' && !isTokens)
        throw new BadRequest('prompt must be a list of texts or token lists', 'prompt');
      reader.content(item);
    }
    return { reader, prompts: items.length };
  },
  countPrompt: (counter, model, body) => counter.countText(model, body['prompt'] as CountableInput),
  choice: (index, text, finish_reason) => ({ index, text, logprobs: null, finish_reason }),
  opener: () => undefined,
  around: (index) => [`{"index":${index},"text":`, ',"logprobs":null,"finish_reason":null}'],
  closer: (index, finish_reason) => ({ index, text: '', logprobs: null, finish_reason }),
};

class CompletionEvents implements StreamEvents {
  private readonly head: string;
  private readonly tail: string;
  private readonly around: readonly (readonly [before: string, after: string])[];

  constructor(
    private readonly generation: Generation,
    private readonly usage: UsageTelling,
    private readonly flavour: Flavour,
  ) {
    const { id, createdS, model } = generation;
    const fields = {
      id,
      object: flavour.chunkObject,
      created: createdS,
      model: model.name,
      system_fingerprint: 'fp_demo',
    };
    // Only the token differs between the chunks of a stream: the rest is serialised once.
    this.head = `data: ${JSON.stringify(fields).slice(0, -1)},"choices":[`;
    this.tail = usage === 'omitted' ? ']}\n\n' : '],"usage":null}\n\n';
    this.around = Array.from({ length: generation.choices }, (_, index) => flavour.around(index));
  }

  opening(): string {
    let events = '';
    for (let index = 0; index < this.generation.choices; index += 1) {
      const opener = this.flavour.opener(index);
      if (opener !== undefined) events += this.chunk(opener);
    }
    return events;
  }

  tokens(from: number, to: number): string {
    const { choices, prose, start } = this.generation;
    if (choices === 1) return this.token(0, prose.text(start, from, to));
    let events = '';
    for (let token = from; token < to; token += 1) {
      const place = Math.floor(token / choices);
      events += this.token(token % choices, prose.text(start, place, place + 1));
    }
    return events;
  }

  malformed(): string {
    return `${this.head}{"index":0,"del\n\n`;
  }

  error(): string {
    return dataEvent({
      error: {
        message: 'The server had an error while processing your request',
        type: 'server_error',
        param: null,
        code: null,
      },
    });
  }

  closing(): string {
    const finishReason = finishReasonOf(this.generation);
    let events = '';
    for (let index = 0; index < this.generation.choices; index += 1) {
      events += this.chunk(this.flavour.closer(index, finishReason));
    }
    if (this.usage === 'twice') events += this.usageChunk(completionUsage(this.generation, 0.5));
    if (this.usage === 'twice' || this.usage === 'once')
      events += this.usageChunk(completionUsage(this.generation));
    if (this.usage === 'null') events += this.usageChunk(null);
    return `${events}data: [DONE]\n\n`;
  }

  private chunk(choice: object): string {
    return this.head + JSON.stringify(choice) + this.tail;
  }

  private token(index: number, text: string): string {
    const [before = '', after = ''] = this.around[index] ?? [];
    return this.head + before + JSON.stringify(text) + after + this.tail;
  }

  private usageChunk(usage: object | null): string {
    return `${this.head}],"usage":${JSON.stringify(usage)}}\n\n`;
  }
}

function finishReasonOf(generation: Generation): string {
  return generation.cutByMaxTokens ? 'length' : 'stop';
}

function dialectOf(flavour: Flavour): Dialect {
  return {
    idPrefix: flavour.idPrefix,
    countPrompt: flavour.countPrompt,

    parse(body): TextRequest {
      const model = readString(body, 'model');
      const { reader, prompts } = flavour.readPrompt(body);
      const options = body['stream_options'];
      return {
        model,
        promptText: reader.read(),
        choices: (readCount(body, 'n', choicesLimit) ?? 1) * prompts,
        maxTokens:
          readCount(body, 'max_completion_tokens', maxTokensLimit) ??
          readCount(body, 'max_tokens', maxTokensLimit),
        stream: readFlag(body, 'stream'),
        includeUsage: isObject(options) && options['include_usage'] === true,
        directives: readDirectives(body),
      };
    },

    body(generation, usage) {
      const text = choiceText(generation);
      const finishReason = finishReasonOf(generation);
      return JSON.stringify({
        id: generation.id,
        object: flavour.object,
        created: generation.createdS,
        model: generation.model.name,
        choices: Array.from({ length: generation.choices }, (_, index) =>
          flavour.choice(index, text, finishReason),
        ),
        ...(usage === 'omitted'
          ? {}
          : { usage: usage === 'null' ? null : completionUsage(generation) }),
        system_fingerprint: 'fp_demo',
      });
    },

    stream: (generation, usage) => new CompletionEvents(generation, usage, flavour),
  };
}

/** POST /v1/chat/completions */
export const chatCompletions = dialectOf(chatFlavour);
/** POST /v1/completions */
export const textCompletions = dialectOf(textFlavour);
