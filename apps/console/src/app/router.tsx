import type { Permission } from '@weir/domain';
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from '@tanstack/react-router';
import { z } from 'zod';
import { asApiError } from '../api/api-error.js';
import { api, meQueryKey, queryClient, whenSignedOut } from '../api/client.js';
import { SignInPage } from '../features/auth/sign-in-page.js';
import { usageSearchSchema } from '../features/usage/usage-search.js';
import { AbsentPage, FailedPage, PendingPage } from './fallback-pages.js';
import { parseSearch, stringifySearch } from './search-params.js';
import { Shell } from './shell.js';

const root = createRootRoute({ component: Outlet });

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  validateSearch: z.object({ back: z.string().startsWith('/').optional().catch(undefined) }),
  component: SignInPage,
});

const app = createRoute({
  getParentRoute: () => root,
  id: '_app',
  component: Shell,
  beforeLoad: async ({ location }) => {
    try {
      await queryClient.ensureQueryData(api.queryOptions('get', '/api/v1/auth/me', {}));
    } catch (error) {
      if (asApiError(error).code !== 'unauthenticated') throw error;
      // Thrown so that the router goes there instead.
      throw redirect({ to: '/sign-in', search: { back: location.href }, replace: true });
    }
  },
});

const optionalId = z.uuid().optional().catch(undefined);
const text = z.string().max(128).optional().catch(undefined);

const gated = (permission: Permission) => ({
  pendingComponent: PendingPage,
  staticData: { permission },
});

const overview = createRoute({
  getParentRoute: () => app,
  path: '/',
  ...gated('usage.read'),
  component: lazyRouteComponent(
    () => import('../features/overview/overview-page.js'),
    'OverviewPage',
  ),
});
const organisation = createRoute({
  getParentRoute: () => app,
  path: '/organisation',
  ...gated('tree.read'),
  validateSearch: z.object({
    node: optionalId,
    search: text,
    /** A limit's id, or `new`. */
    limit: z
      .union([z.uuid(), z.literal('new')])
      .optional()
      .catch(undefined),
  }),
  component: lazyRouteComponent(
    () => import('../features/organisation/organisation-page.js'),
    'OrganisationPage',
  ),
});
const usage = createRoute({
  getParentRoute: () => app,
  path: '/usage',
  ...gated('usage.read'),
  validateSearch: usageSearchSchema,
  component: lazyRouteComponent(() => import('../features/usage/usage-page.js'), 'UsagePage'),
});
const exports = createRoute({
  getParentRoute: () => app,
  path: '/exports',
  ...gated('exports.run'),
  component: lazyRouteComponent(() => import('../features/exports/exports-page.js'), 'ExportsPage'),
});
const keys = createRoute({
  getParentRoute: () => app,
  path: '/keys',
  ...gated('keys.read'),
  validateSearch: z.object({ search: text }),
  component: lazyRouteComponent(() => import('../features/keys/keys-page.js'), 'KeysPage'),
});
const members = createRoute({
  getParentRoute: () => app,
  path: '/members',
  ...gated('tree.read'),
  validateSearch: z.object({ search: text }),
  component: lazyRouteComponent(() => import('../features/members/members-page.js'), 'MembersPage'),
});
const models = createRoute({
  getParentRoute: () => app,
  path: '/models',
  ...gated('models.read'),
  component: lazyRouteComponent(() => import('../features/models/models-page.js'), 'ModelsPage'),
});
const settings = createRoute({
  getParentRoute: () => app,
  path: '/settings',
  ...gated('tree.read'),
  component: lazyRouteComponent(
    () => import('../features/settings/settings-page.js'),
    'SettingsPage',
  ),
});
const requests = createRoute({
  getParentRoute: () => app,
  path: '/requests',
  ...gated('usage.read'),
  validateSearch: z.object({ id: text }),
  component: lazyRouteComponent(
    () => import('../features/requests/requests-page.js'),
    'RequestsPage',
  ),
});
const reconciliation = createRoute({
  getParentRoute: () => app,
  path: '/reconciliation',
  ...gated('reconciliation.read'),
  component: lazyRouteComponent(
    () => import('../features/reconciliation/reconciliation-page.js'),
    'ReconciliationPage',
  ),
});
const audit = createRoute({
  getParentRoute: () => app,
  path: '/audit',
  ...gated('audit.read'),
  validateSearch: z.object({ search: text, targetId: text }),
  component: lazyRouteComponent(() => import('../features/audit/audit-page.js'), 'AuditPage'),
});

export const router = createRouter({
  routeTree: root.addChildren([
    signIn,
    app.addChildren([
      overview,
      organisation,
      usage,
      exports,
      keys,
      members,
      models,
      settings,
      requests,
      reconciliation,
      audit,
    ]),
  ]),
  parseSearch,
  stringifySearch,
  defaultPreload: 'intent',
  defaultPendingMs: 300,
  defaultNotFoundComponent: AbsentPage,
  defaultErrorComponent: FailedPage,
});

whenSignedOut(() => {
  const { pathname, href } = router.state.location;
  if (pathname === '/sign-in') return;
  queryClient.removeQueries({ queryKey: meQueryKey });
  void router.navigate({ to: '/sign-in', search: { back: href }, replace: true });
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
  interface StaticDataRouteOption {
    /** What one must be allowed in order to read the page. */
    permission?: Permission;
  }
}
