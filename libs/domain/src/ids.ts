import { v7 as uuidv7 } from 'uuid';

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** A new UUIDv7 (RFC 9562): unique, and sortable by the time it was made. */
export function newId(atMs?: number): string {
  return atMs === undefined ? uuidv7() : uuidv7({ msecs: atMs });
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
