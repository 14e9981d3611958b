import { Boxes, Plus, Server } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { toast } from 'sonner';
import { asApiError } from '../../api/api-error.js';
import { api, ifMatch } from '../../api/client.js';
import { refreshAll } from '../../api/refresh.js';
import type { ModelRow, UpstreamRow } from '../../api/types.js';
import { useDenied } from '../../app/me.js';
import { useFormat } from '../../format/use-format.js';
import { Badge } from '../../ui/badge.js';
import { Button } from '../../ui/button.js';
import { PageHeader, Panel } from '../../ui/panel.js';
import { ErrorState, Loading, State } from '../../ui/states.js';
import { ModelDialog } from './model-dialog.js';
import { currentPrice, priceState } from './prepare-prices.js';
import { PriceDialog } from './price-dialog.js';
import { UpstreamDialog } from './upstream-dialog.js';

type Open =
  | { kind: 'upstream'; row: UpstreamRow | null }
  | { kind: 'model' }
  | { kind: 'price'; row: ModelRow };

/** A planned price comes into force while the page is open. */
const refreshMs = 15_000;

/** What can be called, at what price, and where it is served. */
export function ModelsPage() {
  const { t } = useTranslation();
  const format = useFormat();
  const denied = useDenied()('models.write');
  const upstreams = api.useQuery('get', '/api/v1/upstreams', {});
  const models = api.useQuery('get', '/api/v1/models', {}, { refetchInterval: refreshMs });
  const [open, setOpen] = useState<Open | null>(null);
  const close = () => setOpen(null);
  const noUpstream = upstreams.data?.items.length === 0 ? t('models.upstreamFirst') : null;
  return (
    <>
      <PageHeader title={t('page.models')} />
      <Panel
        flush
        title={t('models.upstreams')}
        actions={
          <Button
            size="sm"
            icon={<Plus />}
            denied={denied}
            onClick={() => setOpen({ kind: 'upstream', row: null })}
          >
            {t('models.addUpstream')}
          </Button>
        }
      >
        {upstreams.error ? (
          <ErrorState error={upstreams.error} onRetry={() => void upstreams.refetch()} />
        ) : !upstreams.data ? (
          <Loading rows={3} />
        ) : upstreams.data.items.length === 0 ? (
          <State kind="empty" title={t('models.noUpstreams')} text={t('models.noUpstreamsText')} />
        ) : (
          <ul className="divide-y divide-line">
            {upstreams.data.items.map((row) => (
              <UpstreamLine
                key={row.id}
                row={row}
                denied={denied}
                onEdit={() => setOpen({ kind: 'upstream', row })}
              />
            ))}
          </ul>
        )}
      </Panel>
      <Panel
        flush
        title={t('models.models')}
        note={t('models.pricesNote', { currency: format.currency })}
        actions={
          <Button
            size="sm"
            icon={<Plus />}
            denied={denied ?? noUpstream}
            onClick={() => setOpen({ kind: 'model' })}
          >
            {t('models.add')}
          </Button>
        }
      >
        {models.error ? (
          <ErrorState error={models.error} onRetry={() => void models.refetch()} />
        ) : !models.data ? (
          <Loading rows={5} />
        ) : models.data.items.length === 0 ? (
          <State kind="empty" title={t('models.none')} text={t('models.noneText')} />
        ) : (
          <ul className="divide-y divide-line">
            <li
              aria-hidden
              className="hidden h-9 grid-cols-[minmax(0,1fr)_repeat(3,6.5rem)_19rem] items-center gap-x-4 px-4 text-xs font-medium text-ink-3 md:grid"
            >
              <span>{t('limit.model')}</span>
              {(['input', 'cachedInput', 'output'] as const).map((kind) => (
                <span key={kind} className="text-right">
                  {t(`tokenKind.${kind}`)}
                </span>
              ))}
            </li>
            {models.data.items.map((row) => (
              <ModelLine
                key={row.id}
                row={row}
                upstreams={upstreams.data?.items ?? []}
                now={models.dataUpdatedAt}
                denied={denied}
                onPrice={() => setOpen({ kind: 'price', row })}
              />
            ))}
          </ul>
        )}
      </Panel>
      {open?.kind === 'upstream' && <UpstreamDialog row={open.row} onClose={close} />}
      {open?.kind === 'model' && (
        <ModelDialog upstreams={upstreams.data?.items ?? []} onClose={close} />
      )}
      {open?.kind === 'price' && <PriceDialog model={open.row} onClose={close} />}
    </>
  );
}

function UpstreamLine({
  row,
  denied,
  onEdit,
}: {
  row: UpstreamRow;
  denied: string | null;
  onEdit: () => void;
}) {
  const { t } = useTranslation();
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-1.5 px-4 py-2 md:grid md:grid-cols-[13rem_minmax(0,1fr)_5rem_6rem_5rem_auto]">
      <span className="flex min-w-0 items-center gap-2.5 max-md:flex-1">
        <Server aria-hidden className="size-4 shrink-0 text-ink-3" />
        <span className="truncate font-medium">{row.name}</span>
      </span>
      <code className="truncate font-mono text-xs text-ink-2 max-md:order-last max-md:w-full">
        {row.baseUrl}
      </code>
      <span className="max-md:hidden">
        <Badge>{t(`dialect.${row.dialect}`)}</Badge>
      </span>
      <span className="max-md:hidden">
        <Badge tone={row.hasApiKey ? 'good' : 'neutral'}>
          {t(row.hasApiKey ? 'models.hasKey' : 'models.noKey')}
        </Badge>
      </span>
      <span>
        <Badge tone={row.enabled ? 'good' : 'warn'}>
          {t(row.enabled ? 'status.active' : 'status.disabled')}
        </Badge>
      </span>
      <Button
        size="sm"
        denied={denied}
        onClick={onEdit}
        aria-label={t('models.edit', { name: row.name })}
      >
        {t('action.edit')}
      </Button>
    </li>
  );
}

function ModelLine({
  row,
  upstreams,
  now,
  denied,
  onPrice,
}: {
  row: ModelRow;
  upstreams: readonly UpstreamRow[];
  /** When the row was read: which of its prices is in force is told as of then. */
  now: number;
  denied: string | null;
  onPrice: () => void;
}) {
  const { t } = useTranslation();
  const format = useFormat();
  const [history, setHistory] = useState(false);
  const price = currentPrice(row.prices, now);
  const patch = api.useMutation('patch', '/api/v1/models/{id}', {
    onError: (error) => toast.error(t(`error.${asApiError(error).code}`)),
    onSettled: () => void refreshAll(),
  });
  const names = new Map(upstreams.map(({ id, name }) => [id, name]));
  const perMillion = (kind: 'input' | 'cachedInput' | 'output') => {
    const text = price?.perMillionTokens[kind];
    return text === undefined ? t('state.none') : format.exactMoney(text);
  };
  return (
    <li className="px-4 py-2.5">
      <div className="grid grid-cols-3 items-center gap-x-4 gap-y-2 md:grid-cols-[minmax(0,1fr)_repeat(3,6.5rem)_19rem]">
        <div className="flex min-w-0 items-start gap-2.5 max-md:col-span-3">
          <Boxes aria-hidden className="mt-0.5 size-4 shrink-0 text-ink-3" />
          <div className="min-w-0">
            <p className="flex items-center gap-2">
              <span className="truncate font-medium">{row.alias}</span>
              <Badge>{t(`modelKind.${row.kind}`)}</Badge>
              {!row.enabled && <Badge tone="warn">{t('status.disabled')}</Badge>}
            </p>
            <p className="truncate text-xs text-ink-3">
              {row.routes
                .map(({ upstreamId, upstreamModel }) =>
                  t('models.route', {
                    upstream: names.get(upstreamId) ?? upstreamId,
                    model: upstreamModel,
                  }),
                )
                .join(' · ')}
              {' · '}
              {t('models.context', {
                input: format.compact(String(row.contextWindowTokens)),
                output: format.compact(String(row.maxOutputTokens)),
              })}
            </p>
          </div>
        </div>
        {(['input', 'cachedInput', 'output'] as const).map((kind) => (
          <div key={kind} className="md:text-right">
            <p className="text-2xs text-ink-3 md:hidden">{t(`tokenKind.${kind}`)}</p>
            <p className="tabular">{perMillion(kind)}</p>
          </div>
        ))}
        <div className="flex justify-end gap-1.5 max-md:col-span-3 max-md:justify-start">
          <Button size="sm" aria-expanded={history} onClick={() => setHistory(!history)}>
            {t('models.versions', { versions: row.prices.length })}
          </Button>
          <Button
            size="sm"
            denied={denied}
            aria-label={t('models.priceOf', { name: row.alias })}
            onClick={onPrice}
          >
            {t('models.newPrice')}
          </Button>
          <Button
            size="sm"
            denied={denied}
            busy={patch.isPending}
            aria-label={t(row.enabled ? 'models.disable' : 'models.enable', { name: row.alias })}
            onClick={() =>
              patch.mutate({
                params: { path: { id: row.id }, header: ifMatch(row.version) },
                body: { enabled: !row.enabled },
              })
            }
          >
            {t(row.enabled ? 'action.disable' : 'action.enable')}
          </Button>
        </div>
      </div>
      {history && (
        <div className="mt-2 overflow-x-auto md:ml-6">
          <table className="w-full max-w-3xl text-left text-xs">
            <thead className="text-ink-3">
              <tr>
                <th scope="col" className="py-1 font-medium">
                  {t('models.from')}
                </th>
                <th scope="col" className="py-1 font-medium">
                  {t('models.to')}
                </th>
                <th scope="col" className="py-1 text-right font-medium">
                  {t('tokenKind.input')}
                </th>
                <th scope="col" className="py-1 text-right font-medium">
                  {t('tokenKind.cachedInput')}
                </th>
                <th scope="col" className="py-1 text-right font-medium">
                  {t('tokenKind.output')}
                </th>
                <th scope="col" className="py-1 text-right font-medium">
                  {t('field.status')}
                </th>
              </tr>
            </thead>
            <tbody className="tabular">
              {row.prices
                .toSorted((a, b) => b.from.localeCompare(a.from))
                .map((version) => {
                  const state = priceState(version, now);
                  return (
                    <tr key={version.id}>
                      <td className="border-t border-line py-1">{format.minute(version.from)}</td>
                      <td className="border-t border-line py-1">
                        {version.to === null ? t('models.open') : format.minute(version.to)}
                      </td>
                      {(['input', 'cachedInput', 'output'] as const).map((kind) => {
                        const text = version.perMillionTokens[kind];
                        return (
                          <td key={kind} className="border-t border-line py-1 text-right">
                            {text === undefined ? t('state.none') : format.exactMoney(text)}
                          </td>
                        );
                      })}
                      <td className="border-t border-line py-1 text-right">
                        <Badge
                          tone={
                            state === 'current' ? 'good' : state === 'future' ? 'accent' : 'neutral'
                          }
                        >
                          {t(`priceState.${state}`)}
                        </Badge>
                      </td>
                    </tr>
                  );
                })}
            </tbody>
          </table>
          <p className="mt-1 text-2xs text-ink-3">
            {t('models.perMillion', { currency: format.currency, zone: format.zone })}
          </p>
        </div>
      )}
    </li>
  );
}
