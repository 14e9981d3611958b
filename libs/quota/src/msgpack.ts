/** What the scripts' arguments are made of: texts and numbers in flat lists. */
export type PackedItem = string | number;

/**
 * A flat list as MessagePack (the format that Redis' `cmsgpack` reads): an array of strings and float64 numbers.
 * Only what the scripts need, hence no library.
 */
export function packList(items: readonly PackedItem[]): Buffer {
  const parts: Buffer[] = [];
  const head = Buffer.alloc(5);
  head[0] = 0xdd; // array 32
  head.writeUInt32BE(items.length, 1);
  parts.push(head);
  for (const item of items) {
    if (typeof item === 'number') {
      const number = Buffer.alloc(9);
      number[0] = 0xcb; // float 64
      number.writeDoubleBE(item, 1);
      parts.push(number);
      continue;
    }
    const text = Buffer.from(item, 'utf8');
    const length = Buffer.alloc(5);
    length[0] = 0xdb; // str 32
    length.writeUInt32BE(text.length, 1);
    parts.push(length, text);
  }
  return Buffer.concat(parts);
}

/** Reads what {@link packList} wrote. Throws RangeError on anything else. */
export function unpackList(buffer: Buffer): PackedItem[] {
  if (buffer[0] !== 0xdd) throw new RangeError('not a packed list');
  const count = buffer.readUInt32BE(1);
  const items: PackedItem[] = [];
  let at = 5;
  for (let index = 0; index < count; index += 1) {
    const kind = buffer[at];
    if (kind === 0xcb) {
      items.push(buffer.readDoubleBE(at + 1));
      at += 9;
    } else if (kind === 0xdb) {
      const length = buffer.readUInt32BE(at + 1);
      items.push(buffer.toString('utf8', at + 5, at + 5 + length));
      at += 5 + length;
    } else {
      throw new RangeError('not a packed list');
    }
  }
  return items;
}
