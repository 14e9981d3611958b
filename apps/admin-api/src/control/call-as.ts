import { adminApi, type ApiRoute, type OperationId } from '@weir/domain';
import { validationError } from '@weir/platform';
import type { Actor } from '../access/actor.js';
import type { CallOf } from '../http/operation.js';

/**
 * A call of an operation from within: the body goes through the route's own schema, so that what is made this way is
 * as valid as what the API takes.
 */
export function callAs<Id extends OperationId>(
  operationId: Id,
  actor: Actor,
  requestId: string,
  input: { readonly id?: string; readonly body?: unknown; readonly version?: number },
): CallOf<Id> {
  const route: ApiRoute = adminApi[operationId];
  const body = route.body?.safeParse(input.body);
  if (body !== undefined && !body.success) throw validationError(body.error.issues);
  return {
    actor,
    query: undefined,
    body: body?.data,
    id: input.id ?? '',
    version: input.version ?? 0,
    requestId,
    // There is no HTTP around it; operations that need one (sign-in, downloads) are not called from within.
  } as unknown as CallOf<Id>;
}
