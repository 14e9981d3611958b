import { defaultEnterpriseSettings, noTokens, type ModelDocument } from '@weir/domain';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AskedCall } from '../routes/metered-route.js';
import {
  costOf,
  planOutput,
  pricedUsage,
  requirePrices,
  reservationOf,
  type CallPrice,
} from './reservation.js';

const model: ModelDocument = {
  alias: 'small',
  kind: 'chat',
  dialect: 'openai',
  contextWindowTokens: 8_000,
  maxOutputTokens: 4_000,
  defaultOutputReserve: 1_000,
  routes: [],
  prices: [],
  enabled: true,
};
const asked: AskedCall = {
  model: 'small',
  streamed: false,
  outputCap: null,
  capParam: 'max_tokens',
  choices: 1,
  wantsStreamUsage: false,
  media: { audioInput: false, imageInput: false, audioOutput: false },
  addsStoredContext: false,
};
const price: CallPrice = {
  id: '0190a0a0-0000-7000-8000-000000000001',
  picoPerToken: { input: '500000', cachedInput: '50000', cacheWrite: '625000', output: '1500000' },
  picoPerRequest: '7',
};
const plan = (
  change: Partial<AskedCall>,
  budgetLeft: number | null = null,
  loweredCap: number | null = null,
) =>
  planOutput({ asked: { ...asked, ...change }, model, promptTokens: 100, budgetLeft, loweredCap });

describe('planOutput', () => {
  it('reserves the cap of each choice', () => {
    expect(plan({ outputCap: 300, choices: 3 })).toEqual({
      reservedTokens: 900,
      forwardedCap: null,
      extendable: false,
    });
  });

  it('reserves an instalment for a stream without a cap and lets it grow', () => {
    expect(plan({ streamed: true })).toEqual({
      reservedTokens: 1_000,
      forwardedCap: null,
      extendable: true,
    });
  });

  it('reserves the whole ceiling without a cap, and forwards none, where the budget has twice the room', () => {
    expect(plan({}, 8_000)).toEqual({
      reservedTokens: 4_000,
      forwardedCap: null,
      extendable: false,
    });
    expect(plan({}, null)).toEqual({
      reservedTokens: 4_000,
      forwardedCap: null,
      extendable: false,
    });
  });

  it('reserves at most half of what is left, and then caps the answer to that', () => {
    expect(plan({}, 5_000)).toEqual({
      reservedTokens: 2_500,
      forwardedCap: 2_500,
      extendable: false,
    });
  });

  it('reserves at least the default, however little is left: admission decides', () => {
    expect(plan({}, 10)).toEqual({ reservedTokens: 1_000, forwardedCap: 1_000, extendable: false });
  });

  it('takes a lowered cap for the caller and the upstream alike', () => {
    expect(plan({ streamed: true }, null, 50)).toEqual({
      reservedTokens: 50,
      forwardedCap: 50,
      extendable: false,
    });
  });

  it('never reserves more output than fits beside the prompt, nor nothing at all', () => {
    fc.assert(
      fc.property(
        fc.record({
          outputCap: fc.option(fc.integer({ min: 1, max: 4_000 })),
          choices: fc.integer({ min: 1, max: 128 }),
          streamed: fc.boolean(),
        }),
        fc.integer({ min: 1, max: 20_000 }),
        fc.option(fc.integer({ min: 0, max: 1_000_000 })),
        (change, promptTokens, budgetLeft) => {
          const { reservedTokens, forwardedCap } = planOutput({
            asked: { ...asked, ...change },
            model,
            promptTokens,
            budgetLeft,
            loweredCap: null,
          });
          expect(reservedTokens).toBeGreaterThan(0);
          expect(reservedTokens).toBeLessThanOrEqual(
            Math.max(1, 8_000 - promptTokens) * change.choices,
          );
          // What is sent upstream never allows more than what is reserved.
          if (forwardedCap !== null) expect(forwardedCap * change.choices).toBe(reservedTokens);
        },
      ),
    );
  });
});

describe('reservationOf', () => {
  it('reserves half of the output in windows, all of it in budgets, and money rounded up', () => {
    const reserve = reservationOf({
      asked,
      settings: defaultEnterpriseSettings,
      price,
      promptTokens: 100,
      outputTokens: 301,
    });
    expect(reserve).toEqual({
      windowInputTokens: 100,
      windowOutputTokens: 151,
      budgetInputTokens: 100,
      budgetOutputTokens: 301,
      // (100 × 625000 + 301 × 1500000 + 7) pico, rounded up to nano.
      costNano: 514_001n,
    });
  });

  it('reserves no less money than any split of the same tokens costs at the same price version', () => {
    fc.assert(
      fc.property(
        fc.nat(5_000),
        fc.nat(5_000),
        fc.nat(5_000),
        fc.nat(5_000),
        (input, cachedInput, cacheWrite, output) => {
          const usage = { ...noTokens, input, cachedInput, cacheWrite, output };
          const reserve = reservationOf({
            asked,
            settings: defaultEnterpriseSettings,
            price,
            promptTokens: input + cachedInput + cacheWrite,
            outputTokens: output,
          });
          expect(reserve.costNano >= costOf(usage, price).nano).toBe(true);
        },
      ),
    );
  });
});

describe('prices', () => {
  it('refuses a call that may use tokens without a price', () => {
    const audio = { ...asked, media: { ...asked.media, audioInput: true } };
    expect(() => requirePrices(audio, model, price)).toThrow(/no price for audioInput/);
    expect(() => requirePrices(asked, model, price)).not.toThrow();
  });

  it('counts a kind that the price list does not set apart as the general kind, and loses no token', () => {
    const plain: CallPrice = { ...price, picoPerToken: { input: '10', output: '20' } };
    const usage = {
      ...noTokens,
      input: 1,
      cachedInput: 2,
      cacheWrite: 3,
      imageInput: 4,
      output: 5,
    };
    const priced = pricedUsage(usage, plain);
    expect(priced).toEqual({ ...noTokens, input: 10, output: 5 });
    expect(costOf(priced, plain).pico).toBe(207n);
  });

  it('charges nothing where the price is an explicit zero', () => {
    const free: CallPrice = {
      id: price.id,
      picoPerToken: { input: '0', output: '0' },
      picoPerRequest: '0',
    };
    expect(costOf({ ...noTokens, input: 5, output: 5 }, free).nano).toBe(0n);
  });
});
