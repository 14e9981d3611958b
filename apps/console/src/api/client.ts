import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import createFetchClient, { type Middleware } from 'openapi-fetch';
import createQueryClient from 'openapi-react-query';
import { ApiError, apiErrorFrom, asApiError } from './api-error.js';
import type { paths } from './schema.js';
import type { Me } from './types.js';

const safeMethods = new Set(['GET', 'HEAD']);
export const meQueryKey = ['get', '/api/v1/auth/me', {}] as const;

/** Called when the server no longer knows the session; set by the router, which alone can go to the sign-in page. */
let onSignedOut: () => void = () => {};
export function whenSignedOut(handler: () => void): void {
  onSignedOut = handler;
}

function signedOutBy(error: unknown): boolean {
  return asApiError(error).code === 'unauthenticated';
}

export const queryClient = new QueryClient({
  queryCache: new QueryCache({
    onError: (error, query) => {
      // The question "who am I" may be answered with 401; the router handles it before it shows a page.
      if (signedOutBy(error) && query.queryKey[1] !== meQueryKey[1]) onSignedOut();
    },
  }),
  mutationCache: new MutationCache({
    onError: (error, _variables, _result, mutation) => {
      if (signedOutBy(error) && mutation.options.mutationKey?.[1] !== '/api/v1/auth/sign-in') {
        onSignedOut();
      }
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      // Only what may pass by itself is tried again.
      retry: (failures, error) => {
        const { httpStatus } = asApiError(error);
        return failures < 2 && (httpStatus === 0 || httpStatus >= 502);
      },
      refetchIntervalInBackground: false,
    },
  },
});

const middleware: Middleware = {
  onRequest({ request }) {
    const me = queryClient.getQueryData<Me>(meQueryKey);
    if (me && !safeMethods.has(request.method)) request.headers.set('x-csrf-token', me.csrfToken);
    return request;
  },
  async onResponse({ response }) {
    if (!response.ok) throw await apiErrorFrom(response);
    return undefined;
  },
  onError({ error }) {
    // An abandoned query is no fault: its owner knows it by the name.
    if (error instanceof ApiError) return error;
    if (error instanceof Error && error.name === 'AbortError') return error;
    return new ApiError('network', 0, error instanceof Error ? error.message : String(error));
  },
};

/** The admin API on the console's own origin, typed by the generated OpenAPI types. Failures are {@link ApiError}s. */
export const client = createFetchClient<paths>({ baseUrl: globalThis.location?.origin ?? '' });
client.use(middleware);
export const api = createQueryClient(client);

/** The header of a write that must meet the version it was based on. */
export function ifMatch(version: number): { 'if-match': string } {
  return { 'if-match': `"${version}"` };
}
