import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import type { ColumnDef } from '@tanstack/react-table';
import { useDeferredValue } from 'react';
import { useTranslation } from 'react-i18next';
import { client } from '../../api/client.js';
import type { KeyRow } from '../../api/types.js';
import { bodyOf, usePages } from '../../api/use-pages.js';
import { Badge } from '../../ui/badge.js';
import { When } from '../../ui/figures.js';
import { ListPanel } from '../../ui/list-panel.js';
import { PageHeader } from '../../ui/panel.js';
import { SearchInput } from '../../ui/search-input.js';
import { KeyControls } from './key-controls.js';

const pageSize = 100;
const tones = { active: 'good', disabled: 'warn', deleted: 'neutral' } as const;

/** All keys. They are made beside the user whose they are. */
export function KeysPage() {
  const { t } = useTranslation();
  const navigate = useNavigate({ from: '/keys' });
  const { search = '' } = useSearch({ from: '/_app/keys' });
  const wanted = useDeferredValue(search.trim());
  const pages = usePages(['/api/v1/keys', { wanted }], async (cursor, signal) =>
    bodyOf(
      await client.GET('/api/v1/keys', {
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
  const columns: ColumnDef<KeyRow>[] = [
    {
      id: 'name',
      header: t('field.name'),
      cell: ({ row: { original: key } }) => (
        <Link
          to="/organisation"
          search={{ node: key.id }}
          className="font-medium hover:text-accent hover:underline"
        >
          {key.name}
        </Link>
      ),
    },
    {
      id: 'prefix',
      header: t('keys.key'),
      cell: ({ row: { original: key } }) => (
        <span className="font-mono text-xs text-ink-2">
          {t('keys.prefix', { prefix: key.prefix })}
        </span>
      ),
      meta: { wideOnly: true },
    },
    {
      id: 'user',
      header: t('level.user'),
      cell: ({ row: { original: key } }) => (
        <Link
          to="/organisation"
          search={{ node: key.userId }}
          className="hover:text-accent hover:underline"
        >
          {key.userName}
        </Link>
      ),
    },
    {
      id: 'department',
      header: t('level.department'),
      cell: ({ row: { original: key } }) => key.departmentName,
      meta: { wideOnly: true },
    },
    {
      id: 'models',
      header: t('keys.models'),
      cell: ({ row: { original: key } }) =>
        key.allowedModels === null ? t('keys.allModels') : key.allowedModels.join(', '),
      meta: { wideOnly: true, className: 'max-w-52 truncate text-ink-2' },
    },
    {
      id: 'created',
      header: t('field.created'),
      cell: ({ row: { original: key } }) => <When at={key.createdAt} />,
      meta: { wideOnly: true, className: 'text-ink-2' },
    },
    {
      id: 'expires',
      header: t('keys.expires'),
      cell: ({ row: { original: key } }) =>
        key.expiresAt === null ? t('keys.never') : <When at={key.expiresAt} />,
      meta: { wideOnly: true, className: 'text-ink-2' },
    },
    {
      id: 'status',
      header: t('field.status'),
      cell: ({ row: { original: key } }) => (
        <Badge tone={tones[key.status]}>{t(`status.${key.status}`)}</Badge>
      ),
    },
    {
      id: 'controls',
      header: () => <span className="sr-only">{t('field.actions')}</span>,
      cell: ({ row: { original: key } }) => <KeyControls row={key} />,
      meta: { align: 'right' },
    },
  ];
  return (
    <>
      <PageHeader
        title={t('page.keys')}
        note={t('keys.pageNote')}
        actions={
          <SearchInput
            label={t('keys.search')}
            value={search}
            onChange={(text) =>
              void navigate({ search: { search: text || undefined }, replace: true })
            }
          />
        }
      />
      <ListPanel
        label={t('page.keys')}
        pages={pages}
        columns={columns}
        rowId={({ id }) => id}
        filtered={wanted !== ''}
        empty={{ title: t('keys.none'), text: t('keys.noneText') }}
      />
    </>
  );
}
