import { z } from 'zod';
import { errorCodes } from '../errors.js';
import { adminApi, type ApiRoute } from './routes.js';
import { apiErrorSchema } from './schemas.js';

function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): unknown {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, target: 'draft-2020-12' });
  return rest;
}

function parametersOf(route: ApiRoute): unknown[] {
  const path = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string', format: 'uuid' },
  }));
  const query = Object.entries(route.query?.shape ?? {}).map(([name, schema]) => {
    const optional = (schema as z.ZodType).safeParse(undefined).success;
    return {
      name,
      in: 'query',
      required: !optional,
      schema: jsonSchema(schema as z.ZodType, 'input'),
    };
  });
  const header = route.versioned
    ? [
        {
          name: 'if-match',
          in: 'header',
          required: true,
          description: "The row's version in double quotes.",
          schema: { type: 'string' },
        },
      ]
    : [];
  return [...path, ...query, ...header];
}

function successOf(route: ApiRoute): unknown {
  if (route.response === null) return { description: 'Done' };
  if (route.response === 'file') {
    return { description: 'The file', content: { 'text/csv': { schema: { type: 'string' } } } };
  }
  return {
    description: 'OK',
    content: { 'application/json': { schema: jsonSchema(route.response, 'output') } },
  };
}

/** The OpenAPI 3.1 document of the admin API, generated from the route table; the console's client is generated from it. */
export function adminOpenApiDocument(): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const [operationId, route] of Object.entries(adminApi) as [string, ApiRoute][]) {
    const failures = new Map<number, string[]>();
    for (const code of route.errors ?? []) {
      failures.set(errorCodes[code], [...(failures.get(errorCodes[code]) ?? []), code]);
    }
    (paths[route.path] ??= {})[route.method] = {
      operationId,
      summary: route.summary,
      tags: [route.tag],
      parameters: parametersOf(route),
      ...(route.body
        ? {
            requestBody: {
              required: true,
              content: { 'application/json': { schema: jsonSchema(route.body, 'input') } },
            },
          }
        : {}),
      responses: {
        [route.status]: successOf(route),
        ...Object.fromEntries(
          [...failures].map(([status, codes]) => [
            status,
            {
              description: codes.join(', '),
              content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
            },
          ]),
        ),
        default: {
          description: 'Any other error',
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
        },
      },
    };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Weir admin API',
      version: '1',
      description:
        "Money and counts are decimal texts. Sign-in sets a cookie; changes need the x-csrf-token header, and If-Match with the row's version where a row is changed.",
    },
    paths,
    components: { schemas: { Error: jsonSchema(apiErrorSchema, 'output') } },
  };
}
