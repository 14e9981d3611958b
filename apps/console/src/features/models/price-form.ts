import type { TokenKind } from '@weir/domain';
import { z } from 'zod';
import type { PriceRow } from '../../api/types.js';
import { isPerMillion } from './prepare-prices.js';

const perMillion = z.string().trim().refine(isPerMillion);
const optionalPerMillion = z.union([z.literal(''), perMillion]);

/** Prices per million tokens as a form has them. */
export const priceFormShape = {
  input: perMillion,
  cachedInput: optionalPerMillion,
  output: perMillion,
  cacheWrite: optionalPerMillion,
  audioInput: optionalPerMillion,
  imageInput: optionalPerMillion,
  audioOutput: optionalPerMillion,
};
export type PriceValues = Record<TokenKind, string>;
export const mainKinds = ['input', 'cachedInput', 'output'] as const;
export const rareKinds = ['cacheWrite', 'audioInput', 'imageInput', 'audioOutput'] as const;

/** The form's first values: those of the version before. */
export function priceValuesOf(before: PriceRow | null): PriceValues {
  const prices = before?.perMillionTokens ?? {};
  return {
    input: prices.input ?? '',
    cachedInput: prices.cachedInput ?? '',
    output: prices.output ?? '',
    cacheWrite: prices.cacheWrite ?? '',
    audioInput: prices.audioInput ?? '',
    imageInput: prices.imageInput ?? '',
    audioOutput: prices.audioOutput ?? '',
  };
}

/** The API's form. Cached input costs as input where it is left empty; no other price is ever guessed. */
export function pricesOf(values: PriceValues): PriceRow['perMillionTokens'] {
  const prices: PriceRow['perMillionTokens'] = {
    input: values.input,
    cachedInput: values.cachedInput === '' ? values.input : values.cachedInput,
    output: values.output,
  };
  for (const kind of rareKinds) if (values[kind] !== '') prices[kind] = values[kind];
  return prices;
}
