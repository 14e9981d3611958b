export {
  createTokenCounter,
  warmUp,
  type CountableInput,
  type PromptCount,
  type TokenCounter,
  type TokenCounterOptions,
  type TokenCounterStats,
} from './token-counter.js';
export type { OutputCounter } from './output-counter.js';
export type { ChatBody, MessagesBody, ResponsesBody } from './prompt-parts.js';
export { modelFamily, type ModelFamily } from './model-families.js';
export type { EncodingName } from './rank-table.js';
export { hasMoreElements } from './json-elements.js';
