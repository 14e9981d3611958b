import { z } from 'zod';

const count = z.int().min(0).max(Number.MAX_SAFE_INTEGER);

/**
 * Tokens of one call as a partition: the kinds never overlap, but for `reasoning`, which is inside `output`
 * and never added again.
 */
export const tokenUsageSchema = z.strictObject({
  /** Fresh prompt tokens, neither cached nor written to a cache. */
  input: count,
  cachedInput: count,
  cacheWrite: count,
  audioInput: count,
  imageInput: count,
  /** All text output, reasoning included. */
  output: count,
  /** Part of `output`; informative. */
  reasoning: count,
  audioOutput: count,
});
export type TokenUsage = z.infer<typeof tokenUsageSchema>;

/** The kinds that a price can be set for. `reasoning` is priced as output. */
export const tokenKinds = [
  'input',
  'cachedInput',
  'cacheWrite',
  'audioInput',
  'imageInput',
  'output',
  'audioOutput',
] as const;
export type TokenKind = (typeof tokenKinds)[number];

export const noTokens: TokenUsage = Object.freeze({
  input: 0,
  cachedInput: 0,
  cacheWrite: 0,
  audioInput: 0,
  imageInput: 0,
  output: 0,
  reasoning: 0,
  audioOutput: 0,
});

/** What the `input_tokens` metric counts. */
export function inputTokensOf(usage: TokenUsage): number {
  return usage.input + usage.cachedInput + usage.cacheWrite + usage.audioInput + usage.imageInput;
}

/** What the `output_tokens` metric counts. */
export function outputTokensOf(usage: TokenUsage): number {
  return usage.output + usage.audioOutput;
}
