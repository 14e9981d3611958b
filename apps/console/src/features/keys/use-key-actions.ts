import { useTranslation } from 'react-i18next';
import { toast } from 'sonner';
import { asApiError } from '../../api/api-error.js';
import { api, ifMatch } from '../../api/client.js';
import { refreshAll } from '../../api/refresh.js';
import type { KeyRow } from '../../api/types.js';

/** Disable, enable and delete a key. A key must be disabled before it can be deleted, so that a mistake can be undone. */
export function useKeyActions() {
  const { t } = useTranslation();
  const settled = {
    onError: (error: unknown) => {
      const fault = asApiError(error);
      toast.error(`${t(`error.${fault.code}`)} ${fault.message}`);
    },
    onSettled: () => void refreshAll(),
  };
  const patch = api.useMutation('patch', '/api/v1/keys/{id}', settled);
  const remove = api.useMutation('delete', '/api/v1/keys/{id}', settled);
  const at = (key: KeyRow) => ({
    params: { path: { id: key.id }, header: ifMatch(key.version) },
  });
  return {
    pending: patch.isPending || remove.isPending,
    setStatus: (key: KeyRow, status: 'active' | 'disabled') =>
      patch.mutate({ ...at(key), body: { status } }),
    remove: (key: KeyRow, done: () => void) => remove.mutate(at(key), { onSettled: done }),
  };
}
