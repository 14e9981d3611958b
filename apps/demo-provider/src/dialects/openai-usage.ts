import { outputTokens, type Generation } from '../generation.js';

/** Usage as chat and text completions report it. `share` < 1 gives the smaller numbers of an early report. */
export function completionUsage(generation: Generation, share = 1): object {
  const output = Math.floor(outputTokens(generation) * share);
  return {
    prompt_tokens: generation.promptTokens,
    completion_tokens: output,
    total_tokens: generation.promptTokens + output,
    prompt_tokens_details: { cached_tokens: generation.cachedTokens, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: Math.min(generation.reasoningTokens, output),
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}
