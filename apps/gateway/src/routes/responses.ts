import { sseEvent, type SseEvent } from '../relay/sse-splitter.js';
import {
  invalidField,
  optionalArray,
  optionalBoolean,
  optionalInteger,
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
import { readOpenAiUsage } from './openai-usage.js';

/** POST /v1/responses (OpenAI API reference, "Responses"). */
export const responses: MeteredRoute = {
  path: '/v1/responses',
  dialect: 'openai',
  modelKind: 'chat',
  upstreamPath: '/responses',

  read(body) {
    const model = requiredModel(body);
    const streamed = optionalBoolean(body, 'stream');
    if (optionalBoolean(body, 'background')) {
      throw invalidField(
        'background',
        '"background" is not served: an answer that is fetched later could not be metered. Leave it out.',
      );
    }
    const input = body['input'];
    if (
      input !== undefined &&
      input !== null &&
      typeof input !== 'string' &&
      !Array.isArray(input)
    ) {
      throw invalidField('input', '"input" must be a text or a list of items.');
    }
    // These make the upstream read more than this request holds.
    const addsStoredContext = ['previous_response_id', 'conversation', 'prompt'].some(
      (field) => body[field] !== undefined && body[field] !== null,
    );
    if ((input === undefined || input === null) && !addsStoredContext) {
      throw invalidField('input', 'The request has no "input". Give a text or a list of items.');
    }
    optionalArray(body, 'tools');
    return {
      model,
      streamed,
      outputCap: optionalInteger(body, 'max_output_tokens', {
        min: 1,
        max: Number.MAX_SAFE_INTEGER,
      }),
      capParam: 'max_output_tokens',
      choices: 1,
      wantsStreamUsage: true,
      media: {
        ...noMedia,
        audioInput: hasContent(input, 'input_audio'),
        imageInput: hasContent(input, 'input_image'),
      },
      addsStoredContext,
    };
  },

  countPrompt: (counter, model, body) => counter.countResponses(model, body),

  upstreamBody(body, { upstreamModel, outputCap }) {
    const sent: Record<string, unknown> = { ...body, model: upstreamModel };
    if (outputCap !== null) lowerCap(sent, 'max_output_tokens', outputCap);
    return sent;
  },

  readAnswer: (answer) => ({
    report: readOpenAiUsage(answer['usage']),
    delivered: () => outputTexts(answer['output']),
  }),

  openStream: () => new ResponseStream(),
};

function hasContent(input: unknown, type: string): boolean {
  if (!Array.isArray(input)) return false;
  return input.some((item) => {
    const content: unknown = isJsonObject(item) ? item['content'] : null;
    return (
      Array.isArray(content) && content.some((part) => isJsonObject(part) && part['type'] === type)
    );
  });
}

function outputTexts(output: unknown): string[] {
  if (!Array.isArray(output)) return [];
  return output.filter(isJsonObject).flatMap((item) => {
    const parts = [item['content'], item['summary']].flatMap((list) =>
      Array.isArray(list) ? list.filter(isJsonObject) : [],
    );
    const values = parts.flatMap((part) => [part['text'], part['refusal']]);
    values.push(item['name'], item['arguments']);
    return values.filter((value): value is string => typeof value === 'string' && value !== '');
  });
}

/** The events that end a stream; each carries the whole response with its usage. */
const finalTypes: ReadonlySet<unknown> = new Set([
  'response.completed',
  'response.incomplete',
  'response.failed',
]);

class ResponseStream implements StreamReading {
  private lastReport: UsageReport | null = null;
  private response: JsonObject = {};
  private sequence = 0;
  private isOver = false;
  private errored = false;

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
    const type = chunk['type'];
    if (typeof chunk['sequence_number'] === 'number') this.sequence = chunk['sequence_number'] + 1;
    if (isJsonObject(chunk['response'])) {
      this.response = chunk['response'];
      const report = readOpenAiUsage(this.response['usage']);
      if (report !== null) this.lastReport = report;
    }
    if (type === 'error' || type === 'response.failed') this.errored = true;
    if (finalTypes.has(type)) {
      this.isOver = true;
      return 'last';
    }
    const delta = chunk['delta'];
    if (typeof delta === 'string' && delta !== '' && !String(type).includes('audio')) {
      deliver({ choice: choiceOf(chunk), text: delta });
    }
    return 'forward';
  }

  endEarly({ message, code, usage, weir }: EarlyEnd): string {
    const input = usage.input + usage.cachedInput + usage.cacheWrite;
    const type = 'response.incomplete';
    return sseEvent(
      JSON.stringify({
        type,
        sequence_number: this.sequence,
        response: {
          ...this.response,
          status: 'incomplete',
          incomplete_details: { reason: 'max_output_tokens' },
          usage: {
            input_tokens: input,
            input_tokens_details: { cached_tokens: usage.cachedInput },
            output_tokens: usage.output,
            output_tokens_details: { reasoning_tokens: usage.reasoning },
            total_tokens: input + usage.output,
          },
        },
        weir: { ...weir, code, message },
      }),
      type,
    );
  }

  failure(body: JsonObject): string {
    // The event's own fields, and `error` as well: by that the SDKs know that they have to raise it.
    const { code, message, param } = isJsonObject(body['error']) ? body['error'] : {};
    const fields = { type: 'error', code, message, param, sequence_number: this.sequence };
    return sseEvent(JSON.stringify({ ...fields, ...body }), 'error');
  }
}

/** Deltas of different items may interleave; each is a text of its own. */
function choiceOf(chunk: JsonObject): number {
  const index = chunk['output_index'];
  return typeof index === 'number' && index >= 0 && index < 128 ? index : 0;
}
