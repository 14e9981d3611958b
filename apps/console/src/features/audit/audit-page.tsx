import { useNavigate, useSearch } from '@tanstack/react-router';
import { ChevronRight } from 'lucide-react';
import { useDeferredValue, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { client } from '../../api/client.js';
import type { AuditEntry } from '../../api/types.js';
import { bodyOf, usePages } from '../../api/use-pages.js';
import { Badge } from '../../ui/badge.js';
import { Button } from '../../ui/button.js';
import { cn } from '../../ui/cn.js';
import { When } from '../../ui/figures.js';
import { PageHeader, Panel } from '../../ui/panel.js';
import { SearchInput } from '../../ui/search-input.js';
import { ErrorState, Loading, State } from '../../ui/states.js';
import { prepareDiff } from './prepare-diff.js';

const pageSize = 50;

/** Who changed what; each entry opens to the fields that differ. */
export function AuditPage() {
  const { t } = useTranslation();
  const navigate = useNavigate({ from: '/audit' });
  const { search = '', targetId } = useSearch({ from: '/_app/audit' });
  const wanted = useDeferredValue(search.trim());
  const pages = usePages(['/api/v1/audit', { wanted, targetId }], async (cursor, signal) =>
    bodyOf(
      await client.GET('/api/v1/audit', {
        signal,
        params: {
          query: {
            limit: pageSize,
            ...(wanted ? { search: wanted } : {}),
            ...(targetId ? { targetId } : {}),
            ...(cursor ? { cursor } : {}),
          },
        },
      }),
    ),
  );
  return (
    <>
      <PageHeader
        title={t('page.audit')}
        actions={
          <>
            {targetId && (
              <Button
                onClick={() =>
                  void navigate({ search: (before) => ({ ...before, targetId: undefined }) })
                }
              >
                {t('usage.clearFilter')}
              </Button>
            )}
            <SearchInput
              label={t('audit.search')}
              value={search}
              onChange={(text) =>
                void navigate({
                  search: (before) => ({ ...before, search: text || undefined }),
                  replace: true,
                })
              }
            />
          </>
        }
      />
      <Panel flush>
        {pages.items === undefined ? (
          pages.error ? (
            <ErrorState error={pages.error} onRetry={() => void pages.refetch()} />
          ) : (
            <Loading rows={8} />
          )
        ) : pages.items.length === 0 ? (
          wanted || targetId ? (
            <State kind="filtered" title={t('state.filtered')} text={t('state.filteredText')} />
          ) : (
            <State kind="empty" title={t('audit.none')} text={t('audit.noneText')} />
          )
        ) : (
          <ul className="divide-y divide-line">
            {pages.items.map((entry) => (
              <Entry key={entry.id} entry={entry} />
            ))}
          </ul>
        )}
        {pages.hasNextPage && (
          <div className="flex justify-center border-t border-line p-2">
            <Button
              size="sm"
              busy={pages.isFetchingNextPage}
              onClick={() => void pages.fetchNextPage()}
            >
              {t('action.more')}
            </Button>
          </div>
        )}
      </Panel>
    </>
  );
}

function Entry({ entry }: { entry: AuditEntry }) {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  const changes = prepareDiff(entry.before, entry.after);
  return (
    <li>
      <button
        type="button"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        className="grid w-full grid-cols-[1rem_minmax(0,1fr)] items-center gap-x-3 gap-y-0.5 px-4 py-2 text-left hover:bg-sunken/60 md:grid-cols-[1rem_9.5rem_minmax(7rem,11rem)_minmax(9rem,13rem)_minmax(0,1fr)]"
      >
        <ChevronRight
          aria-hidden
          className={cn('size-4 text-ink-3 transition-transform', open && 'rotate-90')}
        />
        <When at={entry.at} className="text-ink-2" />
        <span className="truncate font-medium max-md:col-start-2">{entry.actorName}</span>
        <span className="truncate max-md:col-start-2">
          <Badge tone="accent">{entry.action}</Badge>
        </span>
        <span className="truncate text-ink-2 max-md:col-start-2">
          {entry.targetName}
          <span className="text-ink-3">
            {' · '}
            {t('audit.changes', { changes: changes.length })}
          </span>
        </span>
      </button>
      {open && (
        <div className="overflow-x-auto border-t border-line bg-canvas px-4 py-3 md:pl-11">
          {changes.length === 0 ? (
            <p className="text-xs text-ink-3">{t('audit.noChanges')}</p>
          ) : (
            <table className="w-full max-w-4xl text-left text-xs">
              <thead className="text-ink-3">
                <tr>
                  <th scope="col" className="w-1/4 pb-1 font-medium">
                    {t('audit.field')}
                  </th>
                  <th scope="col" className="pb-1 font-medium">
                    {t('audit.before')}
                  </th>
                  <th scope="col" className="pb-1 font-medium">
                    {t('audit.after')}
                  </th>
                </tr>
              </thead>
              <tbody className="align-top font-mono">
                {changes.map(({ field, before, after }) => (
                  <tr key={field}>
                    <th scope="row" className="border-t border-line py-1 pr-3 font-normal">
                      {field}
                    </th>
                    <td className="border-t border-line py-1 pr-3 break-all">
                      {before === undefined ? (
                        <span className="text-ink-3">{t('state.none')}</span>
                      ) : (
                        <del className="rounded bg-bad-soft px-1 text-bad">{before}</del>
                      )}
                    </td>
                    <td className="border-t border-line py-1 break-all">
                      {after === undefined ? (
                        <span className="text-ink-3">{t('state.none')}</span>
                      ) : (
                        <ins className="rounded bg-good-soft px-1 text-good no-underline">
                          {after}
                        </ins>
                      )}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
          <p className="mt-2 text-xs text-ink-3">
            {t('audit.target', { type: entry.targetType, id: entry.targetId })}
            {' · '}
            {t('state.requestId', { id: entry.requestId })}
          </p>
        </div>
      )}
    </li>
  );
}
