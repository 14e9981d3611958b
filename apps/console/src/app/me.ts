import type { Permission } from '@weir/domain';
import { useTranslation } from 'react-i18next';
import { api } from '../api/client.js';
import type { Me } from '../api/types.js';

/** Who is signed in. Only used below the route that has made sure of it. */
export function useMe(): Me {
  const { data } = api.useSuspenseQuery('get', '/api/v1/auth/me', {}, { staleTime: 60_000 });
  return data;
}

/** Returns why the signed-in role may not do something, or null when it may. */
export function useDenied(): (permission: Permission) => string | null {
  const { t } = useTranslation();
  const me = useMe();
  return (permission) =>
    me.permissions.includes(permission)
      ? null
      : t('state.deniedControl', {
          role: t(`role.${me.user.role}`),
          permission: t(`permission.${permission}`),
        });
}
