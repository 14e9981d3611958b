import { newId } from '@weir/domain';

export const requestIdHeader = 'x-request-id';

const acceptable = /^[\w.-]{1,128}$/;

/**
 * The id of a request: the caller's own, when it is harmless in logs and headers, else a new UUIDv7.
 *
 * @param incoming value of the caller's `x-request-id`, if any.
 */
export function requestIdFrom(incoming: string | string[] | undefined): string {
  return typeof incoming === 'string' && acceptable.test(incoming) ? incoming : newId(Date.now());
}
