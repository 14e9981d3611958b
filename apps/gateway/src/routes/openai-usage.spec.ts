import { describe, expect, it } from 'vitest';
import { readOpenAiUsage } from './openai-usage.js';

describe('readOpenAiUsage', () => {
  it('takes cached and audio tokens out of the prompt and keeps reasoning inside the output', () => {
    const report = readOpenAiUsage({
      prompt_tokens: 100,
      completion_tokens: 50,
      prompt_tokens_details: { cached_tokens: 60, audio_tokens: 10 },
      completion_tokens_details: { reasoning_tokens: 30, audio_tokens: 5 },
    });
    expect(report).toEqual({
      usage: {
        input: 30,
        cachedInput: 60,
        cacheWrite: 0,
        audioInput: 10,
        imageInput: 0,
        output: 45,
        reasoning: 30,
        audioOutput: 5,
      },
      hasInput: true,
      hasOutput: true,
      clamped: false,
    });
  });

  it('takes an explicit 0 for 0 and null for missing', () => {
    expect(readOpenAiUsage({ prompt_tokens: 0, completion_tokens: 0 })).toMatchObject({
      hasInput: true,
      hasOutput: true,
    });
    expect(readOpenAiUsage({ prompt_tokens: 7, completion_tokens: null })).toMatchObject({
      hasInput: true,
      hasOutput: false,
    });
    expect(readOpenAiUsage({ prompt_tokens: null, completion_tokens: null })).toBeNull();
    expect(readOpenAiUsage(null)).toBeNull();
    expect(readOpenAiUsage({ prompt_tokens: -5, completion_tokens: 1.5 })).toBeNull();
  });

  it('clamps parts that are larger than their whole, flags it, and never goes below zero', () => {
    const report = readOpenAiUsage({
      prompt_tokens: 10,
      completion_tokens: 5,
      prompt_tokens_details: { cached_tokens: 50 },
      completion_tokens_details: { reasoning_tokens: 9 },
    });
    expect(report?.clamped).toBe(true);
    expect(report?.usage).toMatchObject({ input: 0, cachedInput: 10, output: 5, reasoning: 5 });
  });

  it('reads the Responses API, which names the same things differently', () => {
    const report = readOpenAiUsage({
      input_tokens: 20,
      output_tokens: 4,
      input_tokens_details: { cached_tokens: 8 },
    });
    expect(report?.usage).toMatchObject({ input: 12, cachedInput: 8, output: 4 });
  });
});
