import { queryClient } from './client.js';

/** After a change: everything that is on the screen is read again, so that all panels tell the same. */
export function refreshAll(): Promise<void> {
  return queryClient.invalidateQueries({
    predicate: ({ queryKey }) => queryKey[1] !== '/api/v1/auth/me',
  });
}
