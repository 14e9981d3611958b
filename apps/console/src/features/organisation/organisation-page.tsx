import { useNavigate, useSearch } from '@tanstack/react-router';
import { WifiOff } from 'lucide-react';
import { Dialog as RadixDialog } from 'radix-ui';
import { useMemo } from 'react';
import { useTranslation } from 'react-i18next';
import { api } from '../../api/client.js';
import { liveMs } from '../../api/live.js';
import { useFormat } from '../../format/use-format.js';
import { PageHeader, Panel, PanelBoundary } from '../../ui/panel.js';
import { SearchInput } from '../../ui/search-input.js';
import { ErrorState, Loading } from '../../ui/states.js';
import { useIsWide } from '../../ui/use-media.js';
import { focusContent } from '../../ui/dialog.js';
import { LimitEditor } from '../limits/limit-editor.js';
import { NodePanel } from './node-panel.js';
import { prepareTree } from './prepare-tree.js';
import { OrganisationTree } from './tree.js';

/** The tree with live bars; one node's panel beside it, or over it on a narrow screen. */
export function OrganisationPage() {
  const { t } = useTranslation();
  const format = useFormat();
  const wide = useIsWide();
  const navigate = useNavigate({ from: '/organisation' });
  const search = useSearch({ from: '/_app/organisation' });
  const organisation = api.useQuery('get', '/api/v1/organisation', {}, { refetchInterval: liveMs });
  const { data, error } = organisation;
  const tree = useMemo(() => prepareTree(data?.nodes ?? []), [data]);

  const show = (node: string | undefined) =>
    void navigate({ search: (before) => ({ ...before, node, limit: undefined }) });
  const edit = (limit: string | undefined) =>
    void navigate({ search: (before) => ({ ...before, limit }) });
  const panel = search.node && (
    <PanelBoundary key={search.node}>
      <NodePanel id={search.node} onClose={() => show(undefined)} onSelect={show} onEdit={edit} />
    </PanelBoundary>
  );

  return (
    <div className="flex h-[calc(100dvh-4.5rem)] min-h-[32rem] flex-col gap-4 lg:h-[calc(100dvh-5.5rem)]">
      <PageHeader
        title={t('page.organisation')}
        note={
          data && (
            <span className="tabular">
              {t('org.liveAt', { at: format.shortInstant(data.at), zone: format.zone })}
            </span>
          )
        }
        actions={
          <SearchInput
            label={t('org.search')}
            value={search.search ?? ''}
            onChange={(text) =>
              void navigate({
                search: (before) => ({ ...before, search: text || undefined }),
                replace: true,
              })
            }
          />
        }
      />
      {data && !data.live && (
        <p
          role="status"
          className="flex items-center gap-2 rounded-md bg-warn-soft px-3 py-2 text-warn"
        >
          <WifiOff aria-hidden className="size-4" />
          {t('org.notLive')}
        </p>
      )}
      <div className="flex min-h-0 flex-1 items-stretch gap-4">
        <Panel flush className="flex-1">
          {data ? (
            <OrganisationTree
              tree={tree}
              search={search.search ?? ''}
              selected={search.node}
              onSelect={show}
            />
          ) : error ? (
            <ErrorState error={error} onRetry={() => void organisation.refetch()} />
          ) : (
            <Loading rows={10} />
          )}
        </Panel>
        {panel && wide && (
          <section
            aria-label={t('org.panel')}
            className="flex w-[25rem] shrink-0 flex-col overflow-hidden rounded-lg border border-line bg-surface shadow-card"
          >
            {panel}
          </section>
        )}
      </div>
      {panel && !wide && (
        <RadixDialog.Root open onOpenChange={(open) => !open && show(undefined)}>
          <RadixDialog.Portal>
            <RadixDialog.Overlay className="appear fixed inset-0 z-30 bg-[rgb(8_14_18_/_0.45)]" />
            <RadixDialog.Content
              aria-describedby={undefined}
              onOpenAutoFocus={focusContent}
              className="slide-in fixed inset-y-0 right-0 z-40 flex w-full max-w-[26rem] flex-col bg-surface shadow-float outline-none"
            >
              <RadixDialog.Title className="sr-only">{t('org.panel')}</RadixDialog.Title>
              {panel}
            </RadixDialog.Content>
          </RadixDialog.Portal>
        </RadixDialog.Root>
      )}
      {search.node && search.limit && (
        <PanelBoundary>
          <LimitEditor
            key={search.limit}
            nodeId={search.node}
            limitId={search.limit}
            onClose={() => edit(undefined)}
          />
        </PanelBoundary>
      )}
    </div>
  );
}
