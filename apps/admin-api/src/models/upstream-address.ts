import { lookup } from 'node:dns/promises';
import ipaddr from 'ipaddr.js';

/** The addresses behind a host name; rejects when it has none. Tests pass their own. */
export type ResolveHost = (hostname: string) => Promise<string[]>;

const lookupMs = 1_000;

export const resolveHost: ResolveHost = async (hostname) => {
  let timer: NodeJS.Timeout | undefined;
  const tooLong = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('the name server does not answer')), lookupMs);
  });
  try {
    const found = await Promise.race([lookup(hostname, { all: true }), tooLong]);
    return found.map(({ address }) => address);
  } finally {
    clearTimeout(timer);
  }
};

const localNames = /(^|\.)(localhost|local|internal|intranet|lan|home\.arpa)$/;

/**
 * Why an upstream's address cannot be used, or null when it can. Private addresses are refused unless allowed: the
 * gateway would reach into the operator's own network on behalf of whoever may edit upstreams. A name that does not
 * resolve now is taken; it may later, and the gateway checks again when it connects.
 */
export async function upstreamAddressFault(
  baseUrl: string,
  options: { readonly allowPrivate: boolean; readonly resolve: ResolveHost },
): Promise<string | null> {
  const url = new URL(baseUrl);
  if (url.username !== '' || url.password !== '') {
    return 'must not carry a user or password: use apiKey';
  }
  if (url.search !== '' || url.hash !== '') return 'must not have a query or fragment';
  if (options.allowPrivate) return null;
  const hostname = url.hostname
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .toLowerCase();
  if (localNames.test(hostname)) return `${hostname} is a private address`;
  const addresses = ipaddr.isValid(hostname)
    ? [hostname]
    : await options.resolve(hostname).catch(() => []);
  const privateOne = addresses.find((address) => !isPublicAddress(address));
  return privateOne === undefined ? null : `${hostname} is a private address (${privateOne})`;
}

/** Unicast on the public internet; not loopback, link-local, private, shared, multicast or reserved. */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  return ipaddr.process(address).range() === 'unicast';
}
