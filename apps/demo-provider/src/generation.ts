import type { Model } from './price-list.js';
import { proseFor, seedOf, type Prose } from './prose.js';
import type { Settings } from './settings.js';

/** One answer, fixed before its first byte: same prompt and settings, same answer. */
export type Generation = {
  readonly id: string;
  readonly createdS: number;
  readonly model: Model;
  readonly promptTokens: number;
  /** Part of the prompt's. */
  readonly cachedTokens: number;
  /** Generated and billed as output, never shown. */
  readonly reasoningTokens: number;
  readonly choices: number;
  /** Shown tokens of each choice. */
  readonly tokensPerChoice: number;
  readonly cutByMaxTokens: boolean;
  readonly prose: Prose;
  readonly start: number;
};

const leastTokens = 16;
const targetSpread = 30;

export function planGeneration(options: {
  id: string;
  nowMs: number;
  model: Model;
  /** Decides what is answered, and in which language. */
  promptText: string;
  promptTokens: number;
  choices: number;
  /** The request's cap on output tokens, per choice; reasoning counts. */
  maxTokens: number | undefined;
  settings: Settings;
}): Generation {
  const { settings, promptText, promptTokens, maxTokens } = options;
  const seed = seedOf(promptText);
  const prose = proseFor(promptText);
  const start = prose.startFor(seed);
  const wanted =
    settings.output_tokens ?? prose.wholeSentences(start, leastTokens + (seed % targetSpread));
  const isCut = maxTokens !== undefined && wanted > maxTokens && !settings.ignore_max_tokens;
  const outputPerChoice = isCut ? maxTokens : wanted;
  const reasoningPerChoice = Math.min(settings.reasoning_tokens, outputPerChoice);
  return {
    id: options.id,
    createdS: Math.floor(options.nowMs / 1_000),
    model: options.model,
    promptTokens,
    cachedTokens: Math.min(settings.cached_tokens, promptTokens),
    reasoningTokens: reasoningPerChoice * options.choices,
    choices: options.choices,
    tokensPerChoice: outputPerChoice - reasoningPerChoice,
    cutByMaxTokens: isCut,
    prose,
    start,
  };
}

/** Shown tokens of all choices together. */
export function shownTokens(generation: Generation): number {
  return generation.choices * generation.tokensPerChoice;
}

export function outputTokens(generation: Generation): number {
  return generation.reasoningTokens + shownTokens(generation);
}

export function choiceText(generation: Generation): string {
  return generation.prose.text(generation.start, 0, generation.tokensPerChoice);
}
