/**
 * The vocabulary of one encoding as flat arrays in shared memory: a tenth of the memory of a
 * Map of strings, nothing for the garbage collector to walk, and a worker thread reads the same
 * bytes instead of loading them again.
 */
export interface RankTable {
  readonly name: EncodingName;
  /** The split pattern's source, for flags `gu`. */
  readonly pattern: string;
  /** The bytes of all tokens, one after the other, in rank order. */
  readonly pool: Uint8Array;
  /** Token `rank` is `pool[offsets[rank] .. offsets[rank + 1]]`. */
  readonly offsets: Int32Array;
  /** Open addressing with linear probing: rank + 1, or 0 for a free slot. */
  readonly slots: Int32Array;
  /** Rank of each two-byte token by `first << 8 | second`, or -1: the first pass reads only these. */
  readonly pairs: Int32Array;
  readonly longestToken_bytes: number;
}

export type EncodingName = 'o200k_base' | 'cl100k_base';

/** What js-tiktoken ships per encoding. */
export interface RankSource {
  readonly pat_str: string;
  readonly bpe_ranks: string;
}

const TOKENS_PER_SLICE = 8_192;
const HASH_SEED = 0x811c9dc5;
const HASH_PRIME = 0x01000193;

/** Spreads FNV's weak low bits before the mask. */
function finishHash(hash: number): number {
  return (hash ^ (hash >>> 15)) >>> 0;
}

/**
 * Parses js-tiktoken's rank file (lines of `<ignored> <first rank> <base64 token>...`). Gives
 * `pause` a turn every few thousand tokens, so that loading never holds the event loop.
 * @throws when the file is not the contiguous list of ranks that the flat layout relies on
 */
export async function buildRankTable(
  name: EncodingName,
  source: RankSource,
  pause: () => Promise<void>,
): Promise<RankTable> {
  const file = source.bpe_ranks;
  const pool = new Uint8Array(new SharedArrayBuffer(Math.ceil((file.length * 3) / 4)));
  const ends: number[] = [0];
  let used = 0;
  let longest = 0;

  for (const line of file.split('\n')) {
    if (line === '') continue;
    const rankStart = line.indexOf(' ') + 1;
    const tokensStart = line.indexOf(' ', rankStart) + 1;
    const firstRank = Number.parseInt(line.slice(rankStart, tokensStart), 10);
    if (rankStart === 0 || tokensStart === 0 || firstRank !== ends.length - 1) {
      throw new Error(`Rank file of ${name} is not contiguous at rank ${ends.length - 1}`);
    }
    for (let start = tokensStart; start < line.length;) {
      const space = line.indexOf(' ', start);
      const end = space === -1 ? line.length : space;
      const length = decodeBase64(line, start, end, pool, used);
      used += length;
      if (length > longest) longest = length;
      ends.push(used);
      start = end + 1;
      if (ends.length % TOKENS_PER_SLICE === 0) await pause();
    }
  }

  const tokenCount = ends.length - 1;
  const offsets = sharedInts(ends.length);
  offsets.set(ends);
  // A load factor under one half keeps probe chains short.
  const slots = sharedInts(2 ** Math.ceil(Math.log2(tokenCount * 2)));
  const pairs = sharedInts(65_536).fill(-1);
  const mask = slots.length - 1;
  for (let rank = 0; rank < tokenCount; rank++) {
    const start = offsets[rank]!;
    const end = offsets[rank + 1]!;
    let slot = hashBytes(pool, start, end) & mask;
    while (slots[slot] !== 0) slot = (slot + 1) & mask;
    slots[slot] = rank + 1;
    if (end - start === 2) pairs[(pool[start]! << 8) | pool[start + 1]!] = rank;
    if (rank % TOKENS_PER_SLICE === 0) await pause();
  }
  return {
    name,
    pattern: source.pat_str,
    pool: pool.subarray(0, used),
    offsets,
    slots,
    pairs,
    longestToken_bytes: longest,
  };
}

/** The rank of `bytes[start..end]`, or -1 when these bytes are no token. */
export function rankOf(table: RankTable, bytes: Uint8Array, start: number, end: number): number {
  const length = end - start;
  if (length === 2) return table.pairs[(bytes[start]! << 8) | bytes[start + 1]!]!;
  if (length > table.longestToken_bytes) return -1;
  const { slots, offsets, pool } = table;
  const mask = slots.length - 1;
  for (let slot = hashBytes(bytes, start, end) & mask; ; slot = (slot + 1) & mask) {
    const rank = slots[slot]! - 1;
    if (rank < 0) return -1;
    const from = offsets[rank]!;
    if (offsets[rank + 1]! - from !== length) continue;
    let same = 0;
    while (same < length && pool[from + same] === bytes[start + same]) same++;
    if (same === length) return rank;
  }
}

function hashBytes(bytes: Uint8Array, start: number, end: number): number {
  let hash = HASH_SEED;
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ bytes[i]!, HASH_PRIME);
  return finishHash(hash);
}

function sharedInts(length: number): Int32Array {
  return new Int32Array(new SharedArrayBuffer(length * Int32Array.BYTES_PER_ELEMENT));
}

const BASE64_VALUES = new Uint8Array(128);
for (const [value, character] of [
  ...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/',
].entries()) {
  BASE64_VALUES[character.charCodeAt(0)] = value;
}

/** Decodes `text[start..end]` to `target` at `offset`; 200,000 calls of Buffer.from cost 5×. */
function decodeBase64(
  text: string,
  start: number,
  end: number,
  target: Uint8Array,
  offset: number,
): number {
  let written = 0;
  let bits = 0;
  let bitCount = 0;
  for (let i = start; i < end; i++) {
    const code = text.charCodeAt(i);
    if (code === 61) break; // "=" padding
    bits = ((bits << 6) | BASE64_VALUES[code]!) & 0xffff;
    bitCount += 6;
    if (bitCount >= 8) {
      bitCount -= 8;
      target[offset + written++] = (bits >>> bitCount) & 0xff;
    }
  }
  return written;
}
