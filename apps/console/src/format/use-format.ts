import type { LimitMode, Metric, Window } from '@weir/domain';
import { useTranslation } from 'react-i18next';
import { useMe } from '../app/me.js';
import { localeOf } from '../i18n/i18n.js';
import { dateTimeText, minuteText, relativeText, shortInstantText } from './dates.js';
import { compactCount, currencySign, exactMoney, groupedCount, roundedMoney } from './decimal.js';

/** Decimals of money that was used; limits and exact totals keep all their digits. */
export const usageDecimals = 4;

export type Format = ReturnType<typeof useFormat>;

/** Figures, instants and names of terms in the user's language, the enterprise's currency and its zone. */
export function useFormat() {
  const { t, i18n } = useTranslation();
  const { enterprise } = useMe();
  const language = localeOf(i18n.language);
  const zone = enterprise.timeZone;
  const sign = currencySign(enterprise.currency, language);
  const signed = (text: string) =>
    text.startsWith('-') ? `-${sign}${text.slice(1)}` : sign + text;

  const money = (text: string, decimals = usageDecimals) => {
    const { tiny, text: shown } = roundedMoney(text, decimals);
    return (tiny ? '<' : '') + signed(shown);
  };
  const exact = (text: string, minDecimals?: number) => signed(exactMoney(text, minDecimals));
  const amount = (metric: Metric, text: string) =>
    metric === 'cost' ? exact(text) : groupedCount(text);

  return {
    zone,
    currency: enterprise.currency,
    sign,
    language,
    money,
    exactMoney: exact,
    count: groupedCount,
    compact: compactCount,
    /** A limit's amount exactly. */
    amount,
    /** What was used of a limit: money at fixed decimals. */
    used: (metric: Metric, text: string) => (metric === 'cost' ? money(text) : groupedCount(text)),
    dateTime: (instant: string) => dateTimeText(instant, zone),
    minute: (instant: string) => minuteText(instant, zone),
    shortInstant: (instant: string) => shortInstantText(instant, zone, Date.now()),
    relative: (instant: string) => relativeText(instant, Date.now(), language),
    /** `Cost per month`, `Tokens per minute · gpt-4o`. */
    limitName: (limit: { metric: Metric; window: Window | null; model: string | null }) => {
      const metric = t(`metric.${limit.metric}`);
      const base =
        limit.window === null
          ? metric
          : t('limit.name', { metric, window: t(`window.${limit.window}`) });
      return limit.model === null ? base : `${base} · ${limit.model}`;
    },
    mode: (mode: LimitMode) => t(`mode.${mode}`),
  };
}
