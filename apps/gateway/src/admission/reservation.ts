import {
  costPicoOf,
  nanoFromPico,
  noTokens,
  WeirError,
  type EnterpriseSettings,
  type ModelDocument,
  type PriceVersion,
  type TokenKind,
  type TokenUsage,
} from '@weir/domain';
import type { Reservation } from '@weir/quota';
import type { AskedCall } from '../routes/metered-route.js';

/** The prices that one call is reserved and settled with. */
export type CallPrice = Pick<PriceVersion, 'id' | 'picoPerToken' | 'picoPerRequest'>;

/** How many output tokens a call gets, and by which rule. All choices together. */
export type OutputPlan = {
  /** What budgets reserve. */
  readonly reservedTokens: number;
  /** A cap per choice that has to be sent upstream for the reservation to hold; null leaves the caller's body as it is. */
  readonly forwardedCap: number | null;
  /** The reservation is a first instalment: the taximeter extends it while the stream runs. */
  readonly extendable: boolean;
};

/**
 * The most output tokens per choice that the model can give after this prompt. A prompt that is over the window by an
 * estimate alone still gets a token: the upstream has the last word on it.
 */
export function outputCeiling(model: ModelDocument, promptTokens: number): number {
  return Math.max(1, Math.min(model.maxOutputTokens, model.contextWindowTokens - promptTokens));
}

/**
 * The rules of the reservation table:
 * - with a cap: the cap, per choice;
 * - a stream without one: the model's `defaultOutputReserve`, then the taximeter;
 * - neither: the model's ceiling, but never more than half of what is left of the tightest budget (at least the default
 *   reserve); only a cap below the ceiling is forwarded, so that answers are not cut short for nothing.
 *
 * @param budgetLeft output tokens that the tightest hard budget still has room for, besides the prompt; null without one.
 * @param loweredCap a cap per choice that is tried after the full one was refused; null at first.
 */
export function planOutput(input: {
  asked: AskedCall;
  model: ModelDocument;
  promptTokens: number;
  budgetLeft: number | null;
  loweredCap: number | null;
}): OutputPlan {
  const { asked, model, promptTokens, budgetLeft, loweredCap } = input;
  if (model.kind === 'embedding') {
    return { reservedTokens: 0, forwardedCap: null, extendable: false };
  }
  const ceiling = outputCeiling(model, promptTokens);
  if (loweredCap !== null) {
    const cap = Math.max(1, Math.min(loweredCap, asked.outputCap ?? ceiling, ceiling));
    return { reservedTokens: cap * asked.choices, forwardedCap: cap, extendable: false };
  }
  if (asked.outputCap !== null) {
    const cap = Math.min(asked.outputCap, ceiling);
    return { reservedTokens: cap * asked.choices, forwardedCap: null, extendable: false };
  }
  const whole = ceiling * asked.choices;
  const first = Math.min(whole, model.defaultOutputReserve * asked.choices);
  if (asked.streamed) {
    return { reservedTokens: first, forwardedCap: null, extendable: first < whole };
  }
  const room = budgetLeft === null ? whole : Math.max(first, Math.floor(budgetLeft / 2));
  const reserved = Math.min(whole, room);
  if (reserved === whole) {
    return { reservedTokens: whole, forwardedCap: null, extendable: false };
  }
  const cap = Math.max(1, Math.floor(reserved / asked.choices));
  return { reservedTokens: cap * asked.choices, forwardedCap: cap, extendable: false };
}

/**
 * The kinds of input that a prompt may turn out to be: the upstream decides what comes from its cache, so the prompt is
 * priced at the dearest of them and the settled cost never passes the reserved one at the same price version.
 */
function inputKinds(asked: AskedCall): TokenKind[] {
  const kinds: TokenKind[] = ['input', 'cachedInput', 'cacheWrite'];
  if (asked.media.audioInput) kinds.push('audioInput');
  if (asked.media.imageInput) kinds.push('imageInput');
  return kinds;
}

function dearest(price: CallPrice, kinds: readonly TokenKind[]): bigint {
  let most = 0n;
  for (const kind of kinds) {
    const unit = BigInt(price.picoPerToken[kind] ?? 0);
    if (unit > most) most = unit;
  }
  return most;
}

/** Pico-currency of one output token at most. */
export function outputTokenPico(asked: AskedCall, price: CallPrice): bigint {
  return dearest(price, asked.media.audioOutput ? ['output', 'audioOutput'] : ['output']);
}

/** Pico-currency that a prompt of this size costs at most, the price per request included. */
export function promptPico(asked: AskedCall, price: CallPrice, promptTokens: number): bigint {
  return BigInt(price.picoPerRequest) + BigInt(promptTokens) * dearest(price, inputKinds(asked));
}

/**
 * Refuses a call that may use tokens which the price version has no price for: they could not be charged.
 *
 * @throws WeirError `price_missing`
 */
export function requirePrices(asked: AskedCall, model: ModelDocument, price: CallPrice): void {
  const needed: TokenKind[] = ['input'];
  if (model.kind !== 'embedding') needed.push('output');
  if (asked.media.audioInput) needed.push('audioInput');
  if (asked.media.audioOutput) needed.push('audioOutput');
  const missing = needed.filter((kind) => price.picoPerToken[kind] === undefined);
  if (missing.length === 0) return;
  throw new WeirError(
    'price_missing',
    `The model "${model.alias}" has no price for ${missing.join(' and ')} tokens. Ask your administrator to set it.`,
    { headers: { 'x-should-retry': 'false' } },
  );
}

/** What every level reserves for the call. */
export function reservationOf(input: {
  asked: AskedCall;
  settings: EnterpriseSettings;
  price: CallPrice;
  promptTokens: number;
  outputTokens: number;
}): Reservation {
  const { asked, settings, price, promptTokens, outputTokens } = input;
  const costPico =
    promptPico(asked, price, promptTokens) + BigInt(outputTokens) * outputTokenPico(asked, price);
  return {
    windowInputTokens: promptTokens,
    windowOutputTokens: Math.ceil((outputTokens * settings.windowOutputReservePercent) / 100),
    budgetInputTokens: promptTokens,
    budgetOutputTokens: outputTokens,
    costNano: nanoFromPico(costPico),
  };
}

/**
 * A usage in which every token has a price. Where the price list does not set cached, cache-write, image or audio tokens
 * apart, they belong to the general kind that they are a part of, as on a provider's list without such a line.
 */
export function pricedUsage(usage: TokenUsage, price: CallPrice): TokenUsage {
  const priced = { ...usage };
  for (const kind of ['cachedInput', 'cacheWrite', 'audioInput', 'imageInput'] as const) {
    if (priced[kind] === 0 || price.picoPerToken[kind] !== undefined) continue;
    priced.input += priced[kind];
    priced[kind] = 0;
  }
  if (priced.audioOutput > 0 && price.picoPerToken.audioOutput === undefined) {
    priced.output += priced.audioOutput;
    priced.audioOutput = 0;
  }
  return priced;
}

/** Cost of a usage in both units: exact pico, and nano rounded up as the budgets are charged. */
export function costOf(usage: TokenUsage, price: CallPrice): { pico: bigint; nano: bigint } {
  const pico = costPicoOf(usage, price);
  return { pico, nano: nanoFromPico(pico) };
}

/** The usage of a call as far as it is known here: the counted prompt, all fresh, and counted output. */
export function countedUsage(promptTokens: number, outputTokens: number): TokenUsage {
  return { ...noTokens, input: promptTokens, output: outputTokens };
}
