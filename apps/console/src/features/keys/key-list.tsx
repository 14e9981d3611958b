import { KeyRound } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { api } from '../../api/client.js';
import { Badge } from '../../ui/badge.js';
import { ErrorState, Loading } from '../../ui/states.js';
import { KeyControls } from './key-controls.js';

/** Keys shown beside a node; the page of keys has all. */
const shownMax = 20;

export function KeyList({
  filter,
  onSelect,
}: {
  filter: { userId?: string; departmentId?: string };
  onSelect: (id: string) => void;
}) {
  const { t } = useTranslation();
  const keys = api.useQuery('get', '/api/v1/keys', {
    params: { query: { ...filter, limit: shownMax } },
  });
  if (keys.error) return <ErrorState error={keys.error} onRetry={() => void keys.refetch()} />;
  if (!keys.data) return <Loading rows={2} />;
  if (keys.data.items.length === 0) {
    return <p className="py-1 text-xs text-ink-3">{t('keys.none')}</p>;
  }
  return (
    <ul className="divide-y divide-line">
      {keys.data.items.map((row) => (
        <li key={row.id} className="flex items-center gap-2 py-1.5">
          <KeyRound aria-hidden className="size-4 shrink-0 text-ink-3" />
          <div className="min-w-0 flex-1">
            <button
              type="button"
              onClick={() => onSelect(row.id)}
              className="block max-w-full truncate font-medium hover:text-accent hover:underline"
            >
              {row.name}
            </button>
            <p className="truncate text-xs text-ink-3">
              <span className="font-mono">{t('keys.prefix', { prefix: row.prefix })}</span>
              {filter.userId === undefined && ` · ${row.userName}`}
            </p>
          </div>
          {row.status !== 'active' && <Badge tone="warn">{t(`status.${row.status}`)}</Badge>}
          <KeyControls row={row} />
        </li>
      ))}
      {keys.data.nextCursor !== null && (
        <li className="py-1.5 text-xs text-ink-3">{t('keys.more', { max: shownMax })}</li>
      )}
    </ul>
  );
}
