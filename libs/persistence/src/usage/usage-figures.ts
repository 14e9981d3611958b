/** Sums of usage. Tokens as the metrics count them; money exact (pico) and as the budgets were charged (nano). */
export type UsageFigures = {
  /** Upstream attempts that were charged or could have been. */
  readonly requests: bigint;
  /** Logical calls: attempts without those that repeat an earlier one of the same call. */
  readonly calls: bigint;
  /** Attempts that ended in an upstream's error. */
  readonly failed: bigint;
  /** Attempts whose tokens are our own count. */
  readonly estimated: bigint;
  /** All input kinds together. */
  readonly inputTokens: bigint;
  readonly cachedInputTokens: bigint;
  readonly cacheWriteTokens: bigint;
  readonly audioInputTokens: bigint;
  readonly imageInputTokens: bigint;
  /** Text (reasoning included) and audio together. */
  readonly outputTokens: bigint;
  readonly reasoningTokens: bigint;
  readonly audioOutputTokens: bigint;
  /** Input and output. */
  readonly tokens: bigint;
  readonly costPico: bigint;
  readonly costNano: bigint;
};

/** Sum columns of a roll-up (or of a CTE with the same names) under one-letter-safe aliases. */
export const figureSums = `
  coalesce(sum(requests), 0)::text as requests,
  coalesce(sum(requests - retries), 0)::text as calls,
  coalesce(sum(requests) filter (where status = 'error'), 0)::text as failed,
  coalesce(sum(estimated), 0)::text as estimated,
  coalesce(sum(input_tokens + cached_input_tokens + cache_write_tokens + audio_input_tokens + image_input_tokens), 0)::text as input_tokens,
  coalesce(sum(cached_input_tokens), 0)::text as cached_input_tokens,
  coalesce(sum(cache_write_tokens), 0)::text as cache_write_tokens,
  coalesce(sum(audio_input_tokens), 0)::text as audio_input_tokens,
  coalesce(sum(image_input_tokens), 0)::text as image_input_tokens,
  coalesce(sum(output_tokens + audio_output_tokens), 0)::text as output_tokens,
  coalesce(sum(reasoning_tokens), 0)::text as reasoning_tokens,
  coalesce(sum(audio_output_tokens), 0)::text as audio_output_tokens,
  coalesce(sum(cost_pico), 0)::text as cost_pico,
  coalesce(sum(cost_nano), 0)::text as cost_nano`;

export type FigureRow = Readonly<Record<string, string>>;

/** Reads what {@link figureSums} selects. */
export function figuresOf(row: FigureRow): UsageFigures {
  const value = (name: string): bigint => BigInt(row[name] ?? 0);
  const inputTokens = value('input_tokens');
  const outputTokens = value('output_tokens');
  return {
    requests: value('requests'),
    calls: value('calls'),
    failed: value('failed'),
    estimated: value('estimated'),
    inputTokens,
    cachedInputTokens: value('cached_input_tokens'),
    cacheWriteTokens: value('cache_write_tokens'),
    audioInputTokens: value('audio_input_tokens'),
    imageInputTokens: value('image_input_tokens'),
    outputTokens,
    reasoningTokens: value('reasoning_tokens'),
    audioOutputTokens: value('audio_output_tokens'),
    tokens: inputTokens + outputTokens,
    costPico: value('cost_pico'),
    costNano: value('cost_nano'),
  };
}

/** Adds up figures that do not overlap. */
export function sumOfFigures(figures: readonly UsageFigures[]): UsageFigures {
  const sum = figuresOf({}) as { -readonly [Name in keyof UsageFigures]: bigint };
  for (const each of figures) {
    for (const name of Object.keys(sum) as (keyof UsageFigures)[]) sum[name] += each[name];
  }
  return sum;
}
