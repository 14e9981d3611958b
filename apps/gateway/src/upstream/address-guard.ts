import { lookup as systemLookup, type LookupAddress } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';

/** Raised before a connection is made; nothing was sent. */
export class AddressNotAllowedError extends Error {
  readonly code = 'WEIR_ADDRESS_NOT_ALLOWED';

  constructor(host: string, range: string) {
    super(
      `the upstream ${host} has an address that upstreams may not have (${range}); private ones need UPSTREAM_ALLOW_PRIVATE=true`,
    );
  }
}

/** Ranges that an operator may open. Link-local stays shut: cloud metadata services live there. */
const privateRanges: readonly string[] = ['private', 'loopback', 'uniqueLocal', 'carrierGradeNat'];

/** Throws where an upstream may not have this IP address. */
export function requireAllowedAddress(host: string, address: string, allowPrivate: boolean): void {
  // `process` turns ::ffff:10.0.0.1 into 10.0.0.1: a mapped address is no way around.
  const range = ipaddr.process(address).range();
  if (range === 'unicast') return;
  if (allowPrivate && privateRanges.includes(range)) return;
  throw new AddressNotAllowedError(host, range);
}

/** Throws where a URL's host is an IP literal that is not allowed; names are checked when they are resolved. */
export function requireAllowedHost(url: URL, allowPrivate: boolean): void {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0) requireAllowedAddress(host, host, allowPrivate);
}

/**
 * A lookup for sockets that gives only allowed addresses. The socket connects to what this returns, so a name cannot
 * change its mind between the check and the connection (DNS rebinding).
 */
export function guardedLookup(allowPrivate: boolean): LookupFunction {
  return (hostname, options, callback) => {
    systemLookup(hostname, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
      if (error) return callback(error, []);
      let refusal: NodeJS.ErrnoException = new AddressNotAllowedError(hostname, 'no address');
      const allowed = addresses.filter(({ address }) => {
        try {
          requireAllowedAddress(hostname, address, allowPrivate);
          return true;
        } catch (thrown) {
          refusal = thrown as AddressNotAllowedError;
          return false;
        }
      });
      const first = allowed[0];
      if (first === undefined) return callback(refusal, []);
      if (options.all) return callback(null, allowed);
      callback(null, first.address, first.family);
    });
  };
}
