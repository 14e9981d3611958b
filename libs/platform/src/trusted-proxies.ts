import { isIP } from 'node:net';
import { z } from 'zod';

/**
 * Whose `x-forwarded-*` headers are believed: nobody's, those of that many proxies in a row before us, or those of
 * proxies with these addresses or ranges.
 */
export type TrustedProxies = false | number | readonly string[];

/** More proxies in a row than this are a mistake. */
const hopsMax = 10;

const remedy =
  'must be the number of proxies in front of this process, such as 1, or their addresses or ranges separated by commas, such as 10.0.0.0/8';

/** `TRUST_PROXY`: unset, `false` or 0 for none; a number of hops; or addresses and CIDR ranges. */
export const trustedProxiesSchema = z.string().transform((text, context): TrustedProxies => {
  const value = text.trim();
  if (value === 'false' || value === '0') return false;
  const refuse = (message: string): never => {
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  };
  if (['true', 'yes', 'on'].includes(value.toLowerCase())) {
    return refuse(`would believe every caller, who could then pass for any address: it ${remedy}`);
  }
  if (/^\d+$/.test(value)) return Number(value) <= hopsMax ? Number(value) : refuse(remedy);
  const proxies = value.split(',').map((each) => each.trim());
  return proxies.every(isAddressOrRange) ? proxies : refuse(remedy);
});

/** A range of no bits would be everyone. */
function isAddressOrRange(text: string): boolean {
  const [address = '', bits, ...more] = text.split('/');
  const version = isIP(address);
  if (version === 0 || more.length > 0) return false;
  if (bits === undefined) return true;
  return /^[1-9]\d{0,2}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128);
}

/**
 * In Fastify's words. A number of hops is counted from here: the caller's address is the entry that the outermost of our
 * proxies has added, whatever the caller itself has put in front of it.
 */
export function fastifyTrustProxy(
  trusted: TrustedProxies,
): false | string[] | ((address: string, hop: number) => boolean) {
  if (typeof trusted === 'number') return (_address, hop) => hop < trusted;
  return trusted === false ? false : [...trusted];
}
