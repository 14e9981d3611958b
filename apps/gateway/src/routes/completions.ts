import {
  invalidField,
  optionalBoolean,
  optionalInteger,
  optionalObject,
  requiredModel,
} from '../request/fields.js';
import type { JsonObject } from '../request/json-body.js';
import { lowerCap, readStreamOptions } from './chat-completions.js';
import { choicesMax, choicesOf, ChoiceStream } from './choice-stream.js';
import { noMedia, type MeteredRoute } from './metered-route.js';
import { readOpenAiUsage } from './openai-usage.js';
import { promptCount, requiredPrompt } from './text-input.js';

/** POST /v1/completions (OpenAI API reference, "Completions", legacy). */
export const completions: MeteredRoute = {
  path: '/v1/completions',
  dialect: 'openai',
  modelKind: 'chat',
  upstreamPath: '/completions',

  read(body) {
    const model = requiredModel(body);
    const prompt = requiredPrompt(body, 'prompt');
    const streamed = optionalBoolean(body, 'stream');
    const n = optionalInteger(body, 'n', { min: 1, max: choicesMax }) ?? 1;
    // Written on the upstream's side and paid for, though only the best are returned.
    const bestOf = optionalInteger(body, 'best_of', { min: 1, max: choicesMax }) ?? n;
    if (bestOf < n) throw invalidField('best_of', `"best_of" is ${bestOf}, less than "n" (${n}).`);
    return {
      model,
      streamed,
      outputCap: optionalInteger(body, 'max_tokens', { min: 1, max: Number.MAX_SAFE_INTEGER }),
      capParam: 'max_tokens',
      choices: bestOf * promptCount(prompt),
      wantsStreamUsage: readStreamOptions(body, streamed),
      media: noMedia,
      addsStoredContext: false,
    };
  },

  countPrompt: (counter, model, body) => counter.countText(model, requiredPrompt(body, 'prompt')),

  upstreamBody(body, { upstreamModel, outputCap }) {
    const sent: Record<string, unknown> = { ...body, model: upstreamModel };
    if (body['stream'] === true) {
      sent['stream_options'] = { ...optionalObject(body, 'stream_options'), include_usage: true };
    }
    if (outputCap !== null) lowerCap(sent, 'max_tokens', outputCap);
    return sent;
  },

  readAnswer: (answer) => ({
    report: readOpenAiUsage(answer['usage']),
    delivered: () => choicesOf(answer).flatMap(textOf),
  }),

  openStream: (asked) =>
    new ChoiceStream(asked, {
      object: 'text_completion',
      textsOf: textOf,
      lastChoice: (index) => ({ index, text: '', logprobs: null, finish_reason: 'length' }),
    }),
};

function textOf(choice: JsonObject): string[] {
  const text = choice['text'];
  return typeof text === 'string' && text !== '' ? [text] : [];
}
