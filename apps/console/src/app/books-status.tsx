import { CircleCheck, Clock, TriangleAlert } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { api } from '../api/client.js';
import { useFormat } from '../format/use-format.js';
import { cn } from '../ui/cn.js';
import { useMe } from './me.js';

const pollMs = 5_000;

/** How far the books are complete, how much is on its way, and the zone that all figures are in. */
export function BooksStatus({ className }: { className?: string }) {
  const { t } = useTranslation();
  const format = useFormat();
  const me = useMe();
  const { data, isError } = api.useQuery(
    'get',
    '/api/v1/metering',
    {},
    { refetchInterval: pollMs, enabled: me.permissions.includes('usage.read') },
  );
  const troubled = data && (data.holes.length > 0 || data.conflicts > 0 || data.deadLetters > 0);
  const lagging = data && data.lagEvents !== '0';
  const Icon = isError || troubled ? TriangleAlert : lagging ? Clock : CircleCheck;
  return (
    <div className={cn('flex flex-col gap-0.5 text-2xs text-ink-3', className)}>
      {(data || isError) && (
        <p
          data-testid="books-status"
          className={cn(
            'flex items-center gap-1.5 font-medium',
            isError || troubled ? 'text-bad' : lagging ? 'text-warn' : 'text-good',
          )}
        >
          <Icon aria-hidden className="size-3.5 shrink-0" />
          {isError
            ? t('books.unknown')
            : troubled
              ? t('books.troubled')
              : lagging
                ? t('books.lag', { lag: format.count(data.lagEvents) })
                : t('books.upToDate')}
        </p>
      )}
      {data?.completeUpTo && (
        <p className="tabular">
          {t('books.completeUpTo', { at: format.shortInstant(data.completeUpTo) })}
        </p>
      )}
      <p>{t('books.zone', { zone: format.zone })}</p>
    </div>
  );
}
