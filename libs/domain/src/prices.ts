import { z } from 'zod';
import { type TokenKind, type TokenUsage, tokenKinds } from './token-usage.js';

/** Pico (1e-12) of the currency per token or per request, as an integer text: JSON has no integers of this size. */
const picoText = z.string().regex(/^\d{1,18}$/, 'must be a whole number of pico-currency');

/**
 * One version of a model's price, in force in `[from, to)`. A token kind that is absent has no price: a call that
 * may use it is refused. An explicit `"0"` means free.
 */
export const priceVersionSchema = z.strictObject({
  id: z.uuid(),
  model: z.string().min(1),
  currency: z.string().regex(/^[A-Z]{3}$/),
  from: z.iso.datetime(),
  to: z.iso.datetime().nullable(),
  picoPerToken: z.partialRecord(z.enum(tokenKinds), picoText),
  picoPerRequest: picoText,
});
export type PriceVersion = z.infer<typeof priceVersionSchema>;

/** Raised where a usage has tokens of a kind that the price version names no price for. */
export class UnpricedTokenKindError extends Error {
  constructor(
    readonly kind: TokenKind,
    readonly priceVersionId: string,
  ) {
    super(`price version ${priceVersionId} has no price for ${kind} tokens`);
  }
}

/**
 * Exact cost of a call in pico-currency: Σ tokens × unit price, plus the price per request.
 *
 * @throws UnpricedTokenKindError when tokens of a kind without a price were used; never silently 0.
 */
export function costPicoOf(
  usage: TokenUsage,
  price: Pick<PriceVersion, 'id' | 'picoPerToken' | 'picoPerRequest'>,
): bigint {
  let pico = BigInt(price.picoPerRequest);
  for (const kind of tokenKinds) {
    const tokens = usage[kind];
    if (tokens === 0) continue;
    const unit = price.picoPerToken[kind];
    if (unit === undefined) throw new UnpricedTokenKindError(kind, price.id);
    pico += BigInt(tokens) * BigInt(unit);
  }
  return pico;
}

/** The version in force at an instant, or undefined. Ranges of one model never overlap. */
export function priceVersionAt(
  versions: readonly PriceVersion[],
  atMs: number,
): PriceVersion | undefined {
  return versions.find(
    (version) =>
      Date.parse(version.from) <= atMs && (version.to === null || atMs < Date.parse(version.to)),
  );
}
