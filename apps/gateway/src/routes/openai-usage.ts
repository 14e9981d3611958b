import { noTokens, type TokenUsage } from '@weir/domain';
import { isJsonObject, type JsonObject } from '../request/json-body.js';
import type { UsageReport } from './metered-route.js';

/** A count of a usage object: null where it is missing, null or no whole number from 0 up. An explicit 0 is 0. */
export function countIn(usage: JsonObject | null, field: string): number | null {
  const value = usage?.[field];
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
}

export function objectIn(value: JsonObject, field: string): JsonObject | null {
  const inner = value[field];
  return isJsonObject(inner) ? inner : null;
}

/**
 * OpenAI's usage as a partition. `prompt_tokens` includes cached and audio tokens, `completion_tokens` includes
 * reasoning and audio (API reference, "CompletionUsage"); the Responses API has the same under `input_tokens` and
 * `output_tokens`. Parts larger than their whole are clamped to it.
 */
export function readOpenAiUsage(value: unknown): UsageReport | null {
  if (!isJsonObject(value)) return null;
  const prompt = countIn(value, 'prompt_tokens') ?? countIn(value, 'input_tokens');
  const completion = countIn(value, 'completion_tokens') ?? countIn(value, 'output_tokens');
  if (prompt === null && completion === null) return null;
  const promptDetails =
    objectIn(value, 'prompt_tokens_details') ?? objectIn(value, 'input_tokens_details');
  const outputDetails =
    objectIn(value, 'completion_tokens_details') ?? objectIn(value, 'output_tokens_details');
  const wholeInput = prompt ?? 0;
  const wholeOutput = completion ?? 0;
  const cached = countIn(promptDetails, 'cached_tokens') ?? 0;
  const audioIn = countIn(promptDetails, 'audio_tokens') ?? 0;
  const audioOut = countIn(outputDetails, 'audio_tokens') ?? 0;
  const reasoning = countIn(outputDetails, 'reasoning_tokens') ?? 0;
  const cachedInput = Math.min(cached, wholeInput);
  const audioInput = Math.min(audioIn, wholeInput - cachedInput);
  const audioOutput = Math.min(audioOut, wholeOutput);
  const output = wholeOutput - audioOutput;
  const usage: TokenUsage = {
    ...noTokens,
    input: wholeInput - cachedInput - audioInput,
    cachedInput,
    audioInput,
    output,
    reasoning: Math.min(reasoning, output),
    audioOutput,
  };
  const clamped =
    cachedInput !== cached ||
    audioInput !== audioIn ||
    audioOutput !== audioOut ||
    usage.reasoning !== reasoning;
  return { usage, hasInput: prompt !== null, hasOutput: completion !== null, clamped };
}

/** The reverse, for the usage of a stream that we end ourselves. */
export function writeOpenAiUsage(usage: TokenUsage): JsonObject {
  const prompt =
    usage.input + usage.cachedInput + usage.cacheWrite + usage.audioInput + usage.imageInput;
  const completion = usage.output + usage.audioOutput;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: usage.cachedInput },
    completion_tokens_details: { reasoning_tokens: usage.reasoning },
  };
}
