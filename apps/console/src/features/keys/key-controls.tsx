import { Power, PowerOff, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { KeyRow } from '../../api/types.js';
import { useDenied } from '../../app/me.js';
import { IconButton } from '../../ui/button.js';
import { ConfirmDialog } from '../../ui/dialog.js';
import { useKeyActions } from './use-key-actions.js';

export function KeyControls({ row }: { row: KeyRow }) {
  const { t } = useTranslation();
  const denied = useDenied()('keys.write');
  const actions = useKeyActions();
  const [asking, setAsking] = useState<'disable' | 'delete' | null>(null);
  if (row.status === 'deleted') return null;
  const active = row.status === 'active';
  return (
    <span className="inline-flex">
      <IconButton
        size="icon-sm"
        label={t(active ? 'keys.disable' : 'keys.enable', { name: row.name })}
        icon={active ? <PowerOff /> : <Power />}
        denied={denied}
        onClick={(event) => {
          event.stopPropagation();
          if (active) setAsking('disable');
          else actions.setStatus(row, 'active');
        }}
      />
      <IconButton
        size="icon-sm"
        label={t('keys.delete', { name: row.name })}
        icon={<Trash2 />}
        denied={denied ?? (active ? t('keys.disableFirst') : null)}
        onClick={(event) => {
          event.stopPropagation();
          setAsking('delete');
        }}
      />
      {asking && (
        <ConfirmDialog
          danger
          title={t(asking === 'disable' ? 'keys.disable' : 'keys.delete', { name: row.name })}
          text={t(asking === 'disable' ? 'keys.disableText' : 'keys.deleteText')}
          confirm={t(asking === 'disable' ? 'action.disable' : 'action.delete')}
          busy={actions.pending}
          onCancel={() => setAsking(null)}
          onConfirm={() => {
            if (asking === 'disable') {
              actions.setStatus(row, 'disabled');
              setAsking(null);
            } else {
              actions.remove(row, () => setAsking(null));
            }
          }}
        />
      )}
    </span>
  );
}
