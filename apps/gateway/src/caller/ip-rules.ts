import { isIP } from 'node:net';
import type { IpRules } from '@weir/domain';
import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Range = readonly [network: Address, prefixBits: number];
type CompiledRules = { readonly allow: readonly Range[]; readonly deny: readonly Range[] };

/** Rules are parsed once for each policy document, not for each call. */
const compiled = new WeakMap<IpRules, CompiledRules>();
/** Bits before the IPv4 address in an IPv4-mapped one (RFC 4291, 2.5.5.2). */
const mappedPrefixBits = 96;

/** Whether calls may come from an address: `deny` wins, and an empty `allow` allows all. */
export function mayCallFrom(rules: IpRules, address: string): boolean {
  if (rules.allow.length === 0 && rules.deny.length === 0) return true;
  const from = isIP(address) === 0 ? null : ipaddr.process(address);
  // A proxy that is believed may hand over anything. What is no address is in no allowed range.
  if (from === null) return false;
  let ranges = compiled.get(rules);
  if (ranges === undefined) {
    ranges = { allow: rules.allow.map(rangeOf), deny: rules.deny.map(rangeOf) };
    compiled.set(rules, ranges);
  }
  const isFromOneOf = (list: readonly Range[]): boolean =>
    list.some(([network, bits]) => network.kind() === from.kind() && from.match(network, bits));
  if (isFromOneOf(ranges.deny)) return false;
  return ranges.allow.length === 0 || isFromOneOf(ranges.allow);
}

/** @throws Error for what is neither address nor range; the policy's schema has let none through. */
function rangeOf(rule: string): Range {
  if (!rule.includes('/')) {
    const network = ipaddr.process(rule);
    return [network, network.kind() === 'ipv4' ? 32 : 128];
  }
  const [network, bits] = ipaddr.parseCIDR(rule);
  if (network instanceof ipaddr.IPv6 && network.isIPv4MappedAddress() && bits >= mappedPrefixBits) {
    return [network.toIPv4Address(), bits - mappedPrefixBits];
  }
  return [network, bits];
}
