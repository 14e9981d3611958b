import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ColumnDef } from '@tanstack/react-table';
import { Pencil, UserPlus } from 'lucide-react';
import { useDeferredValue, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { client } from '../../api/client.js';
import type { UserRow } from '../../api/types.js';
import { bodyOf, usePages } from '../../api/use-pages.js';
import { useDenied } from '../../app/me.js';
import { Badge } from '../../ui/badge.js';
import { Button, IconButton } from '../../ui/button.js';
import { ListPanel } from '../../ui/list-panel.js';
import { PageHeader } from '../../ui/panel.js';
import { SearchInput } from '../../ui/search-input.js';
import { useDepartments, UserDialog } from './user-dialog.js';

const pageSize = 100;
const tones = { active: 'good', disabled: 'warn', deleted: 'neutral' } as const;

/** People and service accounts with their roles. */
export function MembersPage() {
  const { t } = useTranslation();
  const denied = useDenied()('tree.write');
  const navigate = useNavigate({ from: '/members' });
  const { search = '' } = useSearch({ from: '/_app/members' });
  const wanted = useDeferredValue(search.trim());
  const [dialog, setDialog] = useState<{ id?: string } | null>(null);
  const departmentNames = new Map(
    useDepartments().map(({ value, label }) => [value, label.trim()]),
  );
  const pages = usePages(['/api/v1/users', { wanted }], async (cursor, signal) =>
    bodyOf(
      await client.GET('/api/v1/users', {
        signal,
        params: {
          query: {
            limit: pageSize,
            ...(wanted ? { search: wanted } : {}),
            ...(cursor ? { cursor } : {}),
          },
        },
      }),
    ),
  );
  const columns: ColumnDef<UserRow>[] = [
    {
      id: 'name',
      header: t('field.name'),
      cell: ({ row: { original: user } }) => <span className="font-medium">{user.name}</span>,
    },
    {
      id: 'email',
      header: t('field.email'),
      cell: ({ row: { original: user } }) => user.email ?? t('members.noSignIn'),
      meta: { className: 'text-ink-2' },
    },
    {
      id: 'department',
      header: t('members.department'),
      cell: ({ row: { original: user } }) =>
        departmentNames.get(user.departmentId) ?? t('state.none'),
      meta: { wideOnly: true },
    },
    {
      id: 'kind',
      header: t('members.kind'),
      cell: ({ row: { original: user } }) => t(`members.${user.kind}`),
      meta: { wideOnly: true, className: 'text-ink-2' },
    },
    {
      id: 'role',
      header: t('members.role'),
      cell: ({ row: { original: user } }) => (
        <Badge tone={user.role === 'member' ? 'neutral' : 'accent'}>{t(`role.${user.role}`)}</Badge>
      ),
    },
    {
      id: 'status',
      header: t('field.status'),
      cell: ({ row: { original: user } }) => (
        <Badge tone={tones[user.status]}>{t(`status.${user.status}`)}</Badge>
      ),
    },
    {
      id: 'controls',
      header: () => <span className="sr-only">{t('field.actions')}</span>,
      cell: ({ row: { original: user } }) =>
        user.status !== 'deleted' && (
          <IconButton
            size="icon-sm"
            label={t('members.edit', { name: user.name })}
            icon={<Pencil />}
            denied={denied}
            onClick={() => setDialog({ id: user.id })}
          />
        ),
      meta: { align: 'right' },
    },
  ];
  return (
    <>
      <PageHeader
        title={t('page.members')}
        actions={
          <>
            <SearchInput
              label={t('members.search')}
              value={search}
              onChange={(text) =>
                void navigate({ search: { search: text || undefined }, replace: true })
              }
            />
            <Button
              variant="primary"
              icon={<UserPlus />}
              denied={denied}
              onClick={() => setDialog({})}
            >
              {t('members.add')}
            </Button>
          </>
        }
      />
      <ListPanel
        label={t('page.members')}
        pages={pages}
        columns={columns}
        rowId={({ id }) => id}
        filtered={wanted !== ''}
        empty={{ title: t('members.none'), text: t('members.noneText') }}
      />
      {dialog && <UserDialog {...dialog} onClose={() => setDialog(null)} />}
    </>
  );
}
