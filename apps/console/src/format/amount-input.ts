import { parseAmount, formatAmount, type Metric } from '@weir/domain';

/** Why a typed amount was not understood; each has its sentence in both languages. */
export const amountFaults = [
  'empty',
  'notNumber',
  'commaUnclear',
  'notWhole',
  'tooManyDecimals',
  'negative',
  'wrongCurrency',
  'currencyNotAllowed',
  'tooLarge',
  'zeroMeansBlock',
] as const;
export type AmountFault = (typeof amountFaults)[number];
export type AmountReading =
  | { readonly ok: true; readonly amount: string }
  | { readonly ok: false; readonly fault: AmountFault };

const unitDigits: Readonly<Record<string, number>> = {
  k: 3,
  m: 6,
  b: 9,
  g: 9,
  t: 12,
  千: 3,
  万: 4,
  亿: 8,
};
const signs: Readonly<Record<string, readonly string[]>> = {
  $: ['USD', 'CAD', 'AUD', 'SGD', 'HKD', 'NZD'],
  '€': ['EUR'],
  '£': ['GBP'],
  '¥': ['CNY', 'JPY'],
  '₹': ['INR'],
  '₩': ['KRW'],
};

const fail = (fault: AmountFault): AmountReading => ({ ok: false, fault });

/**
 * Reads an amount as people write it: `1.5M`, `1,500,000`, `$500`, `150万`. The result is the exact decimal text that
 * the API takes, so that it can be echoed before it is saved. What could be read in two ways is refused, not guessed.
 *
 * @param currency the enterprise's; a different sign or code is refused
 */
export function readAmount(metric: Metric, typed: string, currency: string): AmountReading {
  let text = typed.normalize('NFKC').trim();
  if (text === '') return fail('empty');
  if (/^[-−–]/.test(text)) return fail('negative');

  const money = /^([$€£¥₹₩]|[A-Za-z]{3}(?=[\s\d]))\s*|\s*([$€£¥₹₩]|(?<=[\d\s])[A-Z]{3})$/u.exec(
    text,
  );
  if (money) {
    const sign = (money[1] ?? money[2] ?? '').toUpperCase();
    if (metric !== 'cost') return fail('currencyNotAllowed');
    if (sign !== currency && !signs[sign]?.includes(currency)) return fail('wrongCurrency');
    text = text.replace(money[0], '');
  }

  const match = /^([\d,. _']+?)\s*([a-z]|千|万|亿)?$/iu.exec(text);
  const digits = unitDigits[match?.[2]?.toLowerCase() ?? ''] ?? 0;
  if (!match?.[1] || (match[2] && digits === 0)) return fail('notNumber');
  const written = match[1].trim();
  // A comma groups thousands or it is unclear: `1,5` is one and a half to some and fifteen to none.
  if (written.includes(',') && !/^\d{1,3}(,\d{3})+(\.\d+)?$/.test(written)) {
    return fail('commaUnclear');
  }
  const plain = written.replace(/[,_ ']/g, '');
  const number = /^(\d{1,24})(?:\.(\d+))?$/.exec(plain);
  if (!number) return fail('notNumber');

  const fraction = (number[2] ?? '').replace(/0+$/, '').padEnd(digits, '0');
  const whole = `${number[1]}${fraction.slice(0, digits)}`.replace(/^0+(?=\d)/, '');
  const rest = fraction.slice(digits);
  if (rest !== '' && metric !== 'cost') return fail('notWhole');
  if (rest.length > 9) return fail('tooManyDecimals');
  if (whole === '0' && rest === '') return fail('zeroMeansBlock');
  try {
    const amount = parseAmount(metric, rest === '' ? whole : `${whole}.${rest}`);
    return { ok: true, amount: formatAmount(metric, amount) };
  } catch {
    // The shape is right, so only its size can be at fault.
    return fail('tooLarge');
  }
}
