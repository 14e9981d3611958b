import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { exactMoney } from './decimal.js';
import { readAmount } from './amount-input.js';

const tokens = (typed: string) => readAmount('tokens', typed, 'USD');
const cost = (typed: string, currency = 'USD') => readAmount('cost', typed, currency);

describe('a typed amount', () => {
  it.each([
    ['1500000', '1500000'],
    ['1,500,000', '1500000'],
    ['1.5M', '1500000'],
    ['1.5 m', '1500000'],
    ['2k', '2000'],
    ['0.25b', '250000000'],
    ['1_000', '1000'],
    ['150万', '1500000'],
    ['1.5亿', '150000000'],
    ['１５０', '150'],
    ['007', '7'],
  ])('of tokens, %s, is read as %s', (typed, amount) => {
    expect(tokens(typed)).toEqual({ ok: true, amount });
  });

  it.each([
    ['$500', '500.00'],
    ['500 $', '500.00'],
    ['USD 1,250.50', '1250.50'],
    ['12.5 USD', '12.50'],
    ['1.5k', '1500.00'],
    ['0.000000001', '0.000000001'],
    ['$2.5M', '2500000.00'],
  ])('of money, %s, is read as %s', (typed, amount) => {
    expect(cost(typed)).toEqual({ ok: true, amount });
  });

  it('takes the sign of the enterprise’s own currency in both widths', () => {
    expect(cost('¥500', 'CNY')).toEqual({ ok: true, amount: '500.00' });
    expect(cost('￥500', 'CNY')).toEqual({ ok: true, amount: '500.00' });
  });

  it.each([
    ['', 'empty'],
    ['  ', 'empty'],
    ['-5', 'negative'],
    ['−5', 'negative'],
    ['NaN', 'notNumber'],
    ['Infinity', 'notNumber'],
    ['1e6', 'notNumber'],
    ['0x10', 'notNumber'],
    ['1.5.2', 'notNumber'],
    ['5q', 'notNumber'],
    ['1,5', 'commaUnclear'],
    ['1.500,00', 'commaUnclear'],
    ['15,00,000', 'commaUnclear'],
    ['1.5', 'notWhole'],
    ['1.2345k', 'notWhole'],
    ['$5', 'currencyNotAllowed'],
    ['9000000000000000001', 'tooLarge'],
    ['999999999999999999999', 'tooLarge'],
    ['0', 'zeroMeansBlock'],
    ['0.0', 'zeroMeansBlock'],
  ])('of tokens, %j, is refused as %s', (typed, fault) => {
    expect(tokens(typed)).toEqual({ ok: false, fault });
  });

  it.each([
    ['€500', 'wrongCurrency'],
    ['EUR 500', 'wrongCurrency'],
    ['0.0000000001', 'tooManyDecimals'],
    ['10000000000', 'tooLarge'],
  ])('of money, %j, is refused as %s', (typed, fault) => {
    expect(cost(typed)).toEqual({ ok: false, fault });
  });

  it('reads what it echoes to the same amount', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 1n, max: 9n * 10n ** 18n }), (nano) => {
        const text = `${nano / 10n ** 9n}.${(nano % 10n ** 9n).toString().padStart(9, '0')}`;
        const read = cost(text);
        if (!read.ok) throw new Error(read.fault);
        expect(cost(`$${exactMoney(read.amount)}`)).toEqual(read);
      }),
    );
  });
});
