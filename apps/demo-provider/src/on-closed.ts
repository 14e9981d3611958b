import type { ServerResponse } from 'node:http';

/**
 * Calls back once when the connection of a response is gone or the response is done; also when it was gone before, as
 * happens to callers that send a request and leave at once.
 */
export function onClosed(response: ServerResponse, callback: () => void): void {
  if (response.destroyed) queueMicrotask(callback);
  else response.once('close', callback);
}
