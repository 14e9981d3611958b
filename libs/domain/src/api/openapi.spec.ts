import { describe, expect, it } from 'vitest';
import { adminOpenApiDocument } from './openapi.js';
import { adminApi, type ApiRoute } from './routes.js';

describe('the admin API document', () => {
  const document = adminOpenApiDocument();
  const paths = document.paths as Record<string, Record<string, Record<string, unknown>>>;

  it('names every route of the table once', () => {
    const operations = Object.values(paths).flatMap((methods) =>
      Object.values(methods).map((operation) => operation.operationId),
    );
    expect(operations.sort()).toEqual(Object.keys(adminApi).sort());
  });

  it('asks for the version wherever one row is changed or deleted', () => {
    for (const [name, route] of Object.entries(adminApi) as [string, ApiRoute][]) {
      const changesARow = route.method === 'patch' || route.method === 'delete';
      expect(route.versioned === true, name).toBe(changesARow);
    }
  });

  it('lets only sign-in pass without a user', () => {
    const open = (Object.entries(adminApi) as [string, ApiRoute][]).filter(
      ([, route]) => route.permission === null,
    );
    expect(open.map(([name]) => name)).toEqual(['signIn']);
  });
});
