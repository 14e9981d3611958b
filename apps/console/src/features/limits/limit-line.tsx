import { Pencil, Trash2 } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import type { LimitUse } from '../../api/types.js';
import { scaled } from '../../format/decimal.js';
import { useFormat } from '../../format/use-format.js';
import { Badge } from '../../ui/badge.js';
import { IconButton } from '../../ui/button.js';
import { usedText } from '../organisation/limit-text.js';
import { barOf } from '../organisation/prepare-tree.js';
import { LimitMeter, LimitPercent } from './limit-meter.js';

/** One limit with its bar; with controls where the limit is the node's own. */
export function LimitLine({
  owner,
  limit,
  denied,
  onEdit,
  onRemove,
}: {
  owner: string;
  limit: LimitUse;
  denied?: string | null;
  onEdit?: () => void;
  onRemove?: () => void;
}) {
  const { t } = useTranslation();
  const format = useFormat();
  const bar = barOf(limit);
  const name = format.limitName(limit);
  return (
    <li className="flex flex-col gap-1.5 py-2.5" data-limit-id={limit.id}>
      <div className="flex min-h-7 items-center gap-2">
        <span className="truncate font-medium">{name}</span>
        {limit.mode !== 'hard' && <Badge tone="accent">{format.mode(limit.mode)}</Badge>}
        {onEdit && (
          <span className="ml-auto flex">
            <IconButton
              size="icon-sm"
              label={t('limit.edit', { name })}
              icon={<Pencil />}
              denied={denied}
              onClick={onEdit}
            />
            <IconButton
              size="icon-sm"
              label={t('limit.remove', { name })}
              icon={<Trash2 />}
              denied={denied}
              onClick={onRemove}
            />
          </span>
        )}
      </div>
      {bar && <LimitMeter thick owner={owner} bar={bar} />}
      <div className="flex items-baseline justify-between gap-3 text-xs">
        <span className="tabular text-ink-2">
          {usedText(t, format, limit)}
          <span className="text-ink-3">
            {limit.amount === null
              ? t('limit.ofNone')
              : t('limit.of', { amount: format.amount(limit.metric, limit.amount) })}
          </span>
        </span>
        {bar && <LimitPercent bar={bar} />}
      </div>
      <div className="flex items-baseline justify-between gap-3 text-2xs text-ink-3">
        <span className="tabular">
          {limit.reserved === null
            ? null
            : scaled(limit.reserved) === 0n
              ? t('limit.nothingReserved')
              : t('limit.reserved', { amount: format.used(limit.metric, limit.reserved) })}
        </span>
        {limit.resetsAt && (
          <span className="tabular">
            {t('limit.resets', {
              at: format.minute(limit.resetsAt),
              relative: format.relative(limit.resetsAt),
            })}
          </span>
        )}
      </div>
    </li>
  );
}
