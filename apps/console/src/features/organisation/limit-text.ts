import type { TFunction } from 'i18next';
import type { Format } from '../../format/use-format.js';
import { percentText, scaled } from '../../format/decimal.js';
import { pressure, type LimitBar } from './prepare-tree.js';

/** `82.4 %`, or `Blocked (0)`. What is reserved counts: it cannot be spent by others. */
export function barPercent(t: TFunction, bar: LimitBar): string {
  const { used, reserved } = bar.limit;
  if (bar.blocked) return t('limit.blocked');
  if (used === null || reserved === null) return t('state.none');
  return percentText(pressure(bar), scaled(used) + scaled(reserved) === 0n);
}

/** The whole bar in words, for those who hear it and for the tooltip. */
export function barText(t: TFunction, format: Format, bar: LimitBar): string {
  const { metric, used, reserved, amount } = bar.limit;
  if (bar.blocked || amount === null) return t('limit.blocked');
  if (used === null || reserved === null) {
    return t('limit.barUnknown', { amount: format.amount(metric, amount) });
  }
  return t('limit.barText', {
    used: format.used(metric, used),
    reserved: format.used(metric, reserved),
    amount: format.amount(metric, amount),
    percent: barPercent(t, bar),
  });
}

/** What was used of a limit, or that it is not known. */
export function usedText(t: TFunction, format: Format, limit: LimitBar['limit']): string {
  return limit.used === null ? t('limit.unknownUse') : format.used(limit.metric, limit.used);
}
