import { v7 as uuidv7 } from 'uuid';

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Random bytes for the next ids, in stock: asking for a few of them costs nearly as much as asking for thousands. */
const stock = new Uint8Array(16 * 256);
let stockUsed = stock.length;

function random16(): Uint8Array {
  if (stockUsed === stock.length) {
    crypto.getRandomValues(stock);
    stockUsed = 0;
  }
  stockUsed += 16;
  return stock.subarray(stockUsed - 16, stockUsed);
}

/**
 * A new UUIDv7 (RFC 9562): unique, and sortable by the time it was made.
 *
 * @param atMs the instant to carry; without it ids of one process ascend also within a millisecond.
 */
export function newId(atMs?: number): string {
  return atMs === undefined ? uuidv7() : uuidv7({ msecs: atMs, random: random16() });
}

/** Whether the text is a UUID in canonical lower-case form. Such an id can never carry `{` or `}` into a Redis key. */
export function isId(text: string): boolean {
  return uuidPattern.test(text);
}

/**
 * The instant at which a UUIDv7 was made, in milliseconds since the Unix epoch.
 * The ledger's partition month comes from it, so that the pair (enterprise, event id) stays unique under partitioning.
 *
 * @throws RangeError when the id is not a UUIDv7.
 */
export function instantOfId(id: string): number {
  if (!isId(id) || id[14] !== '7') throw new RangeError(`not a UUIDv7: ${id}`);
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}
