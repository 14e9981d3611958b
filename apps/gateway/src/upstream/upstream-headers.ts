import type { IncomingHttpHeaders } from 'node:http';
import type { UpstreamDocument } from '@weir/domain';

/** Request headers of a client that mean something to an upstream. All others stay here, credentials above all. */
const forwardedNames = [
  'openai-beta',
  'anthropic-version',
  'anthropic-beta',
  'accept-language',
] as const;
export type ForwardableHeaders = Readonly<Partial<Record<(typeof forwardedNames)[number], string>>>;

/** Response headers of an upstream that a client may see. Its limits, cookies and organisation are not ours to show. */
const returnedNames = ['openai-processing-ms', 'openai-version'] as const;

const defaultAnthropicVersion = '2023-06-01';

export function forwardableHeaders(headers: IncomingHttpHeaders): ForwardableHeaders {
  const forwarded: Partial<Record<(typeof forwardedNames)[number], string>> = {};
  for (const name of forwardedNames) {
    const value = headers[name];
    if (typeof value === 'string' && value.length <= 1_024) forwarded[name] = value;
  }
  return forwarded;
}

export function upstreamHeaders(
  upstream: UpstreamDocument,
  secret: string | null,
  request: { headers: ForwardableHeaders; requestId: string; streamed: boolean },
): Record<string, string> {
  const headers: Record<string, string> = {
    ...request.headers,
    'content-type': 'application/json',
    accept: request.streamed ? 'text/event-stream' : 'application/json',
    // Bodies are read on the way: compressing them would be work for both sides.
    'accept-encoding': 'identity',
    'user-agent': 'weir-gateway',
    'x-request-id': request.requestId,
  };
  if (upstream.dialect === 'anthropic') {
    headers['anthropic-version'] ??= defaultAnthropicVersion;
    if (secret !== null) headers['x-api-key'] = secret;
  } else if (secret !== null) {
    headers['authorization'] = `Bearer ${secret}`;
  }
  return headers;
}

export function returnedHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string> {
  const returned: Record<string, string> = {};
  for (const name of returnedNames) {
    const value = headers[name];
    if (typeof value === 'string') returned[name] = value;
  }
  const upstreamId = headers['x-request-id'] ?? headers['request-id'];
  if (typeof upstreamId === 'string') returned['x-upstream-request-id'] = upstreamId;
  return returned;
}
