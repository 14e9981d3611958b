import { picoPerTokenFromPerMillion } from '@weir/domain';

/** A model of this provider with its prices in pico-USD per token. */
export type Model = {
  readonly name: string;
  readonly kind: 'text' | 'embedding';
  readonly picoPerInputToken: bigint;
  readonly picoPerCachedToken: bigint;
  readonly picoPerOutputToken: bigint;
};

function model(
  name: string,
  kind: Model['kind'],
  input: string,
  cached: string,
  output: string,
): Model {
  return {
    name,
    kind,
    picoPerInputToken: picoPerTokenFromPerMillion(input),
    picoPerCachedToken: picoPerTokenFromPerMillion(cached),
    picoPerOutputToken: picoPerTokenFromPerMillion(output),
  };
}

/** Prices in USD per million tokens: input, cached input, output. */
export const models: readonly Model[] = [
  model('demo-small', 'text', '0.50', '0.05', '1.50'),
  model('demo-large', 'text', '5.00', '0.50', '15.00'),
  model('demo-free', 'text', '0', '0', '0'),
  model('demo-embed', 'embedding', '0.02', '0.02', '0'),
];

export const modelsByName: ReadonlyMap<string, Model> = new Map(
  models.map((entry) => [entry.name, entry]),
);

/** `promptTokens` includes the cached ones. */
export function costPico(
  model: Model,
  promptTokens: number,
  cachedTokens: number,
  outputTokens: number,
): bigint {
  return (
    BigInt(promptTokens - cachedTokens) * model.picoPerInputToken +
    BigInt(cachedTokens) * model.picoPerCachedToken +
    BigInt(outputTokens) * model.picoPerOutputToken
  );
}
