import { requiredModel } from '../request/fields.js';
import { noMedia, type MeteredRoute, type StreamReading } from './metered-route.js';
import { readOpenAiUsage } from './openai-usage.js';
import { requiredPrompt } from './text-input.js';

/** POST /v1/embeddings (OpenAI API reference, "Embeddings"): input only, never streamed. */
export const embeddings: MeteredRoute = {
  path: '/v1/embeddings',
  dialect: 'openai',
  modelKind: 'embedding',
  upstreamPath: '/embeddings',

  read(body) {
    const model = requiredModel(body);
    requiredPrompt(body, 'input');
    return {
      model,
      streamed: false,
      outputCap: null,
      capParam: 'input',
      choices: 1,
      wantsStreamUsage: false,
      media: noMedia,
      addsStoredContext: false,
    };
  },

  countPrompt: (counter, model, body) => counter.countText(model, requiredPrompt(body, 'input')),

  upstreamBody: (body, { upstreamModel }) => ({ ...body, model: upstreamModel }),

  readAnswer(answer) {
    const report = readOpenAiUsage(answer['usage']);
    // There is no output to count, so that none is reported is complete.
    return {
      report: report === null ? null : { ...report, hasOutput: true },
      delivered: () => [],
    };
  },

  openStream(): StreamReading {
    throw new Error('embeddings are not streamed');
  },
};
