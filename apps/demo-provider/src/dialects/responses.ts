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

function usageOf(generation: Generation): object {
  const output = outputTokens(generation);
  return {
    input_tokens: generation.promptTokens,
    input_tokens_details: { cached_tokens: generation.cachedTokens, cache_write_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: generation.reasoningTokens },
    total_tokens: generation.promptTokens + output,
  };
}

function usageField(generation: Generation, usage: UsageTelling): object {
  if (usage === 'omitted') return {};
  return { usage: usage === 'null' ? null : usageOf(generation) };
}

const itemId = (generation: Generation): string => generation.id.replace(/^resp_/, 'msg_');

function part(text: string): object {
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}

function item(generation: Generation, status: string, content: object[]): object {
  return { id: itemId(generation), type: 'message', status, role: 'assistant', content };
}

function finalStatus(generation: Generation): 'completed' | 'incomplete' {
  return generation.cutByMaxTokens ? 'incomplete' : 'completed';
}

function response(
  generation: Generation,
  status: string,
  output: object[],
  more: object = {},
): object {
  return {
    id: generation.id,
    object: 'response',
    created_at: generation.createdS,
    status,
    error: null,
    incomplete_details: status === 'incomplete' ? { reason: 'max_output_tokens' } : null,
    instructions: null,
    metadata: {},
    model: generation.model.name,
    output,
    parallel_tool_calls: true,
    temperature: 1,
    tool_choice: 'auto',
    tools: [],
    top_p: 1,
    ...more,
  };
}

function finalResponse(generation: Generation, usage: UsageTelling): object {
  const status = finalStatus(generation);
  const output = [item(generation, status, [part(choiceText(generation))])];
  return response(generation, status, output, usageField(generation, usage));
}

class ResponseEvents implements StreamEvents {
  private sequence = 0;
  private readonly deltaFields: string;

  constructor(
    private readonly generation: Generation,
    private readonly usage: UsageTelling,
  ) {
    const fields = { item_id: itemId(generation), output_index: 0, content_index: 0, logprobs: [] };
    this.deltaFields = JSON.stringify(fields).slice(1);
  }

  opening(): string {
    const { generation } = this;
    const begun = response(generation, 'in_progress', [], { usage: null });
    return (
      this.event('response.created', { response: begun }) +
      this.event('response.in_progress', { response: begun }) +
      this.event('response.output_item.added', {
        output_index: 0,
        item: item(generation, 'in_progress', []),
      }) +
      this.event('response.content_part.added', { ...this.place(), part: part('') })
    );
  }

  tokens(from: number, to: number): string {
    const text = this.generation.prose.text(this.generation.start, from, to);
    const type = 'response.output_text.delta';
    this.sequence += 1;
    return `event: ${type}\ndata: {"type":"${type}","sequence_number":${this.sequence - 1},"delta":${JSON.stringify(text)},${this.deltaFields}\n\n`;
  }

  malformed(): string {
    return 'event: response.output_text.delta\ndata: {"type":"response.output_te\n\n';
  }

  error(): string {
    return this.event('error', {
      code: 'server_error',
      message: 'The server had an error while processing your request',
      param: null,
    });
  }

  closing(): string {
    const { generation } = this;
    const text = choiceText(generation);
    const status = finalStatus(generation);
    let events =
      this.event('response.output_text.done', { ...this.place(), text, logprobs: [] }) +
      this.event('response.content_part.done', { ...this.place(), part: part(text) }) +
      this.event('response.output_item.done', {
        output_index: 0,
        item: item(generation, status, [part(text)]),
      });
    const final = { response: finalResponse(generation, this.usage) };
    if (this.usage === 'twice') events += this.event(`response.${status}`, final);
    events += this.event(`response.${status}`, final);
    return events;
  }

  private place(): object {
    return { item_id: itemId(this.generation), output_index: 0, content_index: 0 };
  }

  private event(type: string, fields: object): string {
    this.sequence += 1;
    return namedEvent({ type, ...{ sequence_number: this.sequence - 1 }, ...fields });
  }
}

/** POST /v1/responses */
export const responses: Dialect = {
  idPrefix: 'resp_',
  countPrompt: (counter, model, body) => counter.countResponses(model, body),

  parse(body) {
    const model = readString(body, 'model');
    const reader = new PromptReader().content(body['instructions']).json(body['tools']);
    const { input } = body;
    if (typeof input === 'string') reader.content(input);
    else if (Array.isArray(input)) reader.messages(input, 'input');
    else if (typeof body['previous_response_id'] !== 'string') {
      throw new BadRequest('input must be a text or a list', 'input');
    }
    return {
      model,
      promptText: reader.read(),
      choices: 1,
      maxTokens: readCount(body, 'max_output_tokens', maxTokensLimit),
      stream: readFlag(body, 'stream'),
      includeUsage: true,
      directives: readDirectives(body),
    };
  },

  body: (generation, usage) => JSON.stringify(finalResponse(generation, usage)),
  stream: (generation, usage) => new ResponseEvents(generation, usage),
};
