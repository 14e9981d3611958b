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
      parts.push(packNumber(item));
    } else {
      const text = Buffer.from(item, 'utf8');
      parts.push(packTextHead(text.length), text);
    }
  }
  return Buffer.concat(parts);
}

/** In as few bytes as it takes: scripts pay for each byte of their arguments. */
function packNumber(number: number): Buffer {
  if (Number.isInteger(number) && number >= 0 && !Object.is(number, -0)) {
    if (number < 0x80) return Buffer.from([number]);
    if (number <= 0xffff) return Buffer.from([0xcd, number >> 8, number & 0xff]);
    if (number <= 0xffff_ffff) {
      const packed = Buffer.from([0xce, 0, 0, 0, 0]);
      packed.writeUInt32BE(number, 1);
      return packed;
    }
  }
  const packed = Buffer.alloc(9, 0xcb); // float 64
  packed.writeDoubleBE(number, 1);
  return packed;
}

function packTextHead(bytes: number): Buffer {
  if (bytes < 32) return Buffer.from([0xa0 | bytes]);
  if (bytes <= 0xff) return Buffer.from([0xd9, bytes]);
  const head = Buffer.from([0xdb, 0, 0, 0, 0]); // str 32
  head.writeUInt32BE(bytes, 1);
  return head;
}

/** Reads what {@link packList} wrote. Throws RangeError on anything else. */
export function unpackList(buffer: Buffer): PackedItem[] {
  if (buffer[0] !== 0xdd) throw new RangeError('not a packed list');
  const count = buffer.readUInt32BE(1);
  const items: PackedItem[] = [];
  let at = 5;
  for (let index = 0; index < count; index += 1) {
    const kind = buffer[at] ?? 0xc1; // nothing is packed as 0xc1
    at += 1;
    let textBytes: number | null = null;
    if (kind < 0x80) {
      items.push(kind);
    } else if (kind === 0xcd) {
      items.push(buffer.readUInt16BE(at));
      at += 2;
    } else if (kind === 0xce) {
      items.push(buffer.readUInt32BE(at));
      at += 4;
    } else if (kind === 0xcb) {
      items.push(buffer.readDoubleBE(at));
      at += 8;
    } else if (kind >= 0xa0 && kind < 0xc0) {
      textBytes = kind & 0x1f;
    } else if (kind === 0xd9) {
      textBytes = buffer.readUInt8(at);
      at += 1;
    } else if (kind === 0xdb) {
      textBytes = buffer.readUInt32BE(at);
      at += 4;
    } else {
      throw new RangeError('not a packed list');
    }
    if (textBytes !== null) {
      items.push(buffer.toString('utf8', at, at + textBytes));
      at += textBytes;
    }
  }
  return items;
}
