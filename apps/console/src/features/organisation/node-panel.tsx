import { Link } from '@tanstack/react-router';
import { Building2, EllipsisVertical, KeyRound, Plus, UserPlus, X } from 'lucide-react';
import { DropdownMenu } from 'radix-ui';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { toast } from 'sonner';
import { asApiError } from '../../api/api-error.js';
import { api, ifMatch } from '../../api/client.js';
import { liveMs } from '../../api/live.js';
import { refreshAll } from '../../api/refresh.js';
import type { LimitUse, NodeDetail } from '../../api/types.js';
import { useDenied } from '../../app/me.js';
import { useFormat } from '../../format/use-format.js';
import { Badge } from '../../ui/badge.js';
import { Button, IconButton } from '../../ui/button.js';
import { ConfirmDialog } from '../../ui/dialog.js';
import { Count, Money } from '../../ui/figures.js';
import { PanelBoundary } from '../../ui/panel.js';
import { ErrorState, Loading, State } from '../../ui/states.js';
import { CreateKeyDialog } from '../keys/create-key-dialog.js';
import { KeyList } from '../keys/key-list.js';
import { LimitLine } from '../limits/limit-line.js';
import { UserDialog } from '../members/user-dialog.js';
import { DepartmentDialog } from './department-dialog.js';

type Props = {
  id: string;
  onClose: () => void;
  onSelect: (id: string) => void;
  onEdit: (limitId: string) => void;
};

/** Everything about one node: what it used, its own limits, those above that hold too, and its keys. */
export function NodePanel({ id, onClose, onSelect, onEdit }: Props) {
  const { t } = useTranslation();
  const node = api.useQuery(
    'get',
    '/api/v1/nodes/{id}',
    { params: { path: { id } } },
    { refetchInterval: liveMs },
  );
  return (
    <>
      <header className="flex min-h-12 items-center gap-2 border-b border-line py-1.5 pr-2 pl-4">
        {node.data ? (
          <>
            <h2 className="truncate text-sm font-semibold">{node.data.name}</h2>
            <Badge>{t(`level.${node.data.level}`)}</Badge>
            {node.data.status !== 'active' && (
              <Badge tone="warn">{t(`status.${node.data.status}`)}</Badge>
            )}
          </>
        ) : (
          <span />
        )}
        <span className="ml-auto flex">
          {node.data && <NodeMenu node={node.data} onDeleted={onClose} />}
          <IconButton size="icon-sm" label={t('action.close')} icon={<X />} onClick={onClose} />
        </span>
      </header>
      <div
        className="min-h-0 flex-1 overflow-y-auto"
        tabIndex={0}
        role="group"
        aria-label={t('org.panel')}
      >
        {node.data ? (
          <Body node={node.data} onSelect={onSelect} onEdit={onEdit} />
        ) : node.error ? (
          <ErrorState error={node.error} onRetry={() => void node.refetch()} />
        ) : (
          <Loading rows={8} />
        )}
      </div>
    </>
  );
}

function Section({
  title,
  action,
  children,
}: {
  title: string;
  action?: React.ReactNode;
  children: React.ReactNode;
}) {
  return (
    <section aria-label={title} className="border-t border-line px-4 py-3 first:border-t-0">
      <div className="flex min-h-7 flex-wrap items-center justify-between gap-2">
        <h3 className="text-xs font-semibold text-ink-2">{title}</h3>
        {action}
      </div>
      <PanelBoundary>{children}</PanelBoundary>
    </section>
  );
}

function Body({
  node,
  onSelect,
  onEdit,
}: { node: NodeDetail } & Pick<Props, 'onSelect' | 'onEdit'>) {
  const { t } = useTranslation();
  const denied = useDenied();
  const above = node.alsoLimitedBy.filter(({ limits }) => limits.length > 0);
  return (
    <>
      <Section
        title={t('org.monthToDate')}
        action={
          <Link
            to="/usage"
            search={
              node.level === 'department'
                ? { departmentId: node.id, groupBy: 'user' }
                : node.level === 'user'
                  ? { userId: node.id, groupBy: 'key' }
                  : node.level === 'key'
                    ? { keyId: node.id, groupBy: 'model' }
                    : {}
            }
            className="text-xs font-medium text-accent hover:underline"
          >
            {t('org.openUsage')}
          </Link>
        }
      >
        <MonthFigures node={node} />
      </Section>
      {node.level !== 'key' && <NodeActions node={node} />}
      <OwnLimits node={node} onEdit={onEdit} />
      {above.length > 0 && (
        <Section title={t('org.alsoLimitedBy')}>
          {above.map((scope) => (
            <div key={scope.id} className="mt-1">
              <button
                type="button"
                onClick={() => onSelect(scope.id)}
                className="text-xs text-ink-3 hover:text-accent hover:underline"
              >
                {t('org.scope', { level: t(`level.${scope.level}`), name: scope.name })}
              </button>
              <ul className="divide-y divide-line">
                {scope.limits.map((limit) => (
                  <LimitLine key={limit.id} owner={scope.name} limit={limit} />
                ))}
              </ul>
            </div>
          ))}
        </Section>
      )}
      {node.level !== 'key' && (
        <Section
          title={t('page.keys')}
          action={
            node.level === 'enterprise' && (
              <Link to="/keys" className="text-xs font-medium text-accent hover:underline">
                {t('keys.all')}
              </Link>
            )
          }
        >
          {denied('keys.read') === null ? (
            <KeyList
              filter={
                node.level === 'user'
                  ? { userId: node.id }
                  : node.level === 'department'
                    ? { departmentId: node.id }
                    : {}
              }
              onSelect={onSelect}
            />
          ) : (
            <State kind="denied" title={t('state.denied')} text={denied('keys.read')} />
          )}
        </Section>
      )}
    </>
  );
}

function MonthFigures({ node }: { node: NodeDetail }) {
  const { t } = useTranslation();
  const { month } = node;
  if (!month) {
    return <p className="py-1 text-xs text-ink-3">{t('org.noCounters')}</p>;
  }
  return (
    <dl className="mt-1 grid grid-cols-2 gap-x-4 gap-y-1.5 [&_dd]:text-right [&_dt]:text-ink-3 [&>div]:flex [&>div]:items-baseline [&>div]:justify-between [&>div]:gap-2">
      <div>
        <dt>{t('metric.cost')}</dt>
        <dd className="font-medium">
          <Money text={month.cost} testId="node-month-cost" />
        </dd>
      </div>
      <div>
        <dt>{t('metric.tokens')}</dt>
        <dd>
          <Count text={month.tokens} />
        </dd>
      </div>
      <div>
        <dt>{t('org.reserved')}</dt>
        <dd>
          <Money text={month.reservedCost} />
        </dd>
      </div>
      <div>
        <dt>{t('metric.requests')}</dt>
        <dd>
          <Count text={month.requests} />
        </dd>
      </div>
      <div>
        <dt>{t('org.inFlight')}</dt>
        <dd className="tabular">{month.inFlight}</dd>
      </div>
      <div>
        <dt>{t('org.period')}</dt>
        <dd className="tabular">{month.periodId}</dd>
      </div>
    </dl>
  );
}

function OwnLimits({ node, onEdit }: { node: NodeDetail; onEdit: (limitId: string) => void }) {
  const { t } = useTranslation();
  const format = useFormat();
  const denied = useDenied()('limits.write');
  const [removing, setRemoving] = useState<LimitUse | null>(null);
  const remove = api.useMutation('delete', '/api/v1/limits/{id}', {
    onSuccess: () => toast.success(t('limit.removed')),
    onError: (error) => toast.error(t(`error.${asApiError(error).code}`)),
    onSettled: () => {
      setRemoving(null);
      void refreshAll();
    },
  });
  return (
    <Section
      title={t('org.ownLimits')}
      action={
        <Button size="sm" icon={<Plus />} denied={denied} onClick={() => onEdit('new')}>
          {t('limit.add')}
        </Button>
      }
    >
      {node.limits.length === 0 ? (
        <p className="py-1 text-xs text-ink-3">{t('org.noOwnLimits')}</p>
      ) : (
        <ul className="divide-y divide-line">
          {node.limits.map((limit) => (
            <LimitLine
              key={limit.id}
              owner={node.name}
              limit={limit}
              denied={denied}
              onEdit={() => onEdit(limit.id)}
              onRemove={() => setRemoving(limit)}
            />
          ))}
        </ul>
      )}
      {removing && (
        <ConfirmDialog
          danger
          title={t('limit.removeTitle')}
          text={t('limit.removeText', { name: format.limitName(removing), node: node.name })}
          confirm={t('action.remove')}
          busy={remove.isPending}
          onCancel={() => setRemoving(null)}
          onConfirm={() =>
            remove.mutate({
              params: { path: { id: removing.id }, header: ifMatch(removing.version) },
            })
          }
        />
      )}
    </Section>
  );
}

function NodeActions({ node }: { node: NodeDetail }) {
  const { t } = useTranslation();
  const denied = useDenied();
  const [dialog, setDialog] = useState<'department' | 'user' | 'key' | null>(null);
  const close = () => setDialog(null);
  return (
    <div className="flex flex-wrap gap-2 border-t border-line px-4 py-3">
      {(node.level === 'enterprise' || node.level === 'department') && (
        <Button
          size="sm"
          icon={<Building2 />}
          denied={denied('tree.write')}
          onClick={() => setDialog('department')}
        >
          {t('org.addDepartment')}
        </Button>
      )}
      {node.level === 'department' && (
        <Button
          size="sm"
          icon={<UserPlus />}
          denied={denied('tree.write')}
          onClick={() => setDialog('user')}
        >
          {t('org.addUser')}
        </Button>
      )}
      {node.level === 'user' && (
        <Button
          size="sm"
          icon={<KeyRound />}
          denied={denied('keys.write')}
          onClick={() => setDialog('key')}
        >
          {t('keys.create')}
        </Button>
      )}
      {dialog === 'department' && (
        <DepartmentDialog
          parent={{ id: node.level === 'enterprise' ? null : node.id, name: node.name }}
          onClose={close}
        />
      )}
      {dialog === 'user' && <UserDialog departmentId={node.id} onClose={close} />}
      {dialog === 'key' && <CreateKeyDialog user={node} onClose={close} />}
    </div>
  );
}

const itemClass =
  'flex h-8 items-center rounded px-2 outline-none select-none data-[highlighted]:bg-sunken';

/** Rename, disable, delete. A person's or a department's row is read first: the node carries no cost centre or role. */
function NodeMenu({ node, onDeleted }: { node: NodeDetail; onDeleted: () => void }) {
  const { t } = useTranslation();
  const denied = useDenied()('tree.write');
  const [dialog, setDialog] = useState<'edit' | 'delete' | null>(null);
  const settled = {
    onError: (error: unknown) => {
      const fault = asApiError(error);
      toast.error(`${t(`error.${fault.code}`)} ${fault.message}`);
    },
    onSettled: () => {
      setDialog(null);
      void refreshAll();
    },
  };
  const patchDepartment = api.useMutation('patch', '/api/v1/departments/{id}', settled);
  const patchUser = api.useMutation('patch', '/api/v1/users/{id}', settled);
  const deleteDepartment = api.useMutation('delete', '/api/v1/departments/{id}', {
    ...settled,
    onSuccess: onDeleted,
  });
  const deleteUser = api.useMutation('delete', '/api/v1/users/{id}', {
    ...settled,
    onSuccess: onDeleted,
  });
  if (node.level !== 'department' && node.level !== 'user') return null;
  const params = { params: { path: { id: node.id }, header: ifMatch(node.version) } };
  const isDepartment = node.level === 'department';
  const turn = () => {
    const body = { status: node.status === 'active' ? ('disabled' as const) : ('active' as const) };
    if (isDepartment) patchDepartment.mutate({ ...params, body });
    else patchUser.mutate({ ...params, body });
  };
  return (
    <>
      <DropdownMenu.Root>
        <DropdownMenu.Trigger asChild>
          <Button
            variant="ghost"
            size="icon-sm"
            aria-label={t('org.nodeMenu', { name: node.name })}
            icon={<EllipsisVertical />}
            denied={denied}
          />
        </DropdownMenu.Trigger>
        <DropdownMenu.Portal>
          <DropdownMenu.Content
            align="end"
            className="appear z-50 min-w-40 rounded-lg border border-line bg-surface p-1 shadow-float"
          >
            <DropdownMenu.Item className={itemClass} onSelect={() => setDialog('edit')}>
              {t('action.edit')}
            </DropdownMenu.Item>
            <DropdownMenu.Item className={itemClass} onSelect={turn}>
              {t(node.status === 'active' ? 'action.disable' : 'action.enable')}
            </DropdownMenu.Item>
            <DropdownMenu.Item
              className={`${itemClass} text-bad`}
              onSelect={() => setDialog('delete')}
            >
              {t('action.delete')}
            </DropdownMenu.Item>
          </DropdownMenu.Content>
        </DropdownMenu.Portal>
      </DropdownMenu.Root>
      {dialog === 'edit' && isDepartment && (
        <DepartmentDialog id={node.id} onClose={() => setDialog(null)} />
      )}
      {dialog === 'edit' && !isDepartment && (
        <UserDialog id={node.id} onClose={() => setDialog(null)} />
      )}
      {dialog === 'delete' && (
        <ConfirmDialog
          danger
          title={t('org.deleteTitle', { name: node.name })}
          text={t(isDepartment ? 'org.deleteDepartmentText' : 'org.deleteUserText')}
          confirm={t('action.delete')}
          busy={deleteDepartment.isPending || deleteUser.isPending}
          onCancel={() => setDialog(null)}
          onConfirm={() =>
            isDepartment ? deleteDepartment.mutate(params) : deleteUser.mutate(params)
          }
        />
      )}
    </>
  );
}
