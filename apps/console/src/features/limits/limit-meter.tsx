import { useTranslation } from 'react-i18next';
import { useFormat } from '../../format/use-format.js';
import { cn } from '../../ui/cn.js';
import { Meter, meterTone, type MeterTone } from '../../ui/meter.js';
import { barPercent, barText } from '../organisation/limit-text.js';
import { pressure, type LimitBar } from '../organisation/prepare-tree.js';

const toneText: Readonly<Record<MeterTone, string>> = {
  calm: 'text-ink-2',
  near: 'text-warn',
  full: 'text-bad',
};

/** The bar of one limit, with all of it in words for those who cannot see it. */
export function LimitMeter({
  owner,
  bar,
  thick = false,
}: {
  owner: string;
  bar: LimitBar;
  thick?: boolean;
}) {
  const { t } = useTranslation();
  const format = useFormat();
  return (
    <Meter
      thick={thick}
      label={t('limit.meter', { name: owner, limit: format.limitName(bar.limit) })}
      text={barText(t, format, bar)}
      share={bar.use}
      blocked={bar.blocked}
    />
  );
}

/** How full a limit is, as text in the bar's own tone. */
export function LimitPercent({ bar, className }: { bar: LimitBar; className?: string }) {
  const { t } = useTranslation();
  return (
    <span
      className={cn('tabular shrink-0 font-medium', toneText[meterTone(pressure(bar))], className)}
    >
      {barPercent(t, bar)}
    </span>
  );
}
