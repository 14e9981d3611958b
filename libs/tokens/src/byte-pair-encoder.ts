import { RecentCounts } from './recent-counts.js';
import { rankOf, type RankTable } from './rank-table.js';

/** Up to here a scan for the lowest rank beats the heap's bookkeeping. */
const LINEAR_PIECE_BYTES_MAX = 64;
/** Work space is kept for pieces up to this size; larger ones get their own and return it. */
const KEPT_SPACE_BYTES = 65_536;
/** Longer pieces are rare and hardly ever repeat. */
const CACHED_PIECE_CHARS_MAX = 48;
const CACHED_PIECES_MAX = 32_768;
/** Heap keys hold rank and position in one double: rank × 2^24 + position. */
const POSITION_RANGE = 2 ** 24;
const NO_RANK = -1;

/**
 * Counts tokens as js-tiktoken's `encode` would produce them, with special-token text taken as
 * ordinary text, in O(n log n) of the text's length (theirs is O(n²) and more per piece).
 * Not re-entrant; one per thread and encoding.
 */
export class BytePairEncoder {
  private readonly pattern: RegExp;
  private readonly recent = new RecentCounts(CACHED_PIECES_MAX);
  private readonly utf8 = new TextEncoder();
  private readonly space = new MergeSpace(KEPT_SPACE_BYTES);
  private readonly partStarts = new Int32Array(LINEAR_PIECE_BYTES_MAX + 1);
  private readonly partRanks = new Int32Array(LINEAR_PIECE_BYTES_MAX + 1);

  constructor(private readonly table: RankTable) {
    this.pattern = new RegExp(table.pattern, 'gu');
  }

  /** Tokens of `text`. Never throws on its content: lone surrogates count as U+FFFD. */
  count(text: string): number {
    const { pattern } = this;
    let tokens = 0;
    // The patterns cover every character, so one piece starts where the last one ended.
    let start = 0;
    pattern.lastIndex = 0;
    while (start < text.length && pattern.test(text)) {
      const end = pattern.lastIndex;
      tokens += this.countPiece(text, start, end);
      start = end;
    }
    return tokens;
  }

  private countPiece(text: string, start: number, end: number): number {
    if (end - start === 1 && text.charCodeAt(start) < 128) return 1;
    const piece = text.slice(start, end);
    if (piece.length > CACHED_PIECE_CHARS_MAX) return this.mergePiece(piece);
    const known = this.recent.get(piece);
    if (known !== undefined) return known;
    const tokens = this.mergePiece(piece);
    this.recent.set(piece, tokens);
    return tokens;
  }

  private mergePiece(piece: string): number {
    const bytesMax = piece.length * 3;
    const space = bytesMax <= KEPT_SPACE_BYTES ? this.space : new MergeSpace(bytesMax);
    const length = this.utf8.encodeInto(piece, space.bytes).written;
    if (rankOf(this.table, space.bytes, 0, length) !== NO_RANK) return 1;
    return length <= LINEAR_PIECE_BYTES_MAX
      ? this.mergeShort(space.bytes, length)
      : this.mergeLong(space, length);
  }

  /** tiktoken's own way: join the leftmost pair of lowest rank until no pair is a token. */
  private mergeShort(bytes: Uint8Array, length: number): number {
    const { table, partStarts, partRanks } = this;
    let parts = length;
    for (let i = 0; i < length; i++) {
      partStarts[i] = i;
      partRanks[i] = i + 1 < length ? rankOf(table, bytes, i, i + 2) : NO_RANK;
    }
    partStarts[length] = length;
    for (;;) {
      let lowest = Infinity;
      let at = NO_RANK;
      for (let i = 0; i < parts - 1; i++) {
        const rank = partRanks[i]!;
        if (rank !== NO_RANK && rank < lowest) {
          lowest = rank;
          at = i;
        }
      }
      if (at === NO_RANK) return parts;
      partStarts.copyWithin(at + 1, at + 2, parts + 1);
      partRanks.copyWithin(at + 1, at + 2, parts);
      parts--;
      for (const i of at > 0 ? [at - 1, at] : [at]) {
        partRanks[i] =
          i + 1 < parts ? rankOf(table, bytes, partStarts[i]!, partStarts[i + 2]!) : NO_RANK;
      }
    }
  }

  /**
   * The same merge with a heap of (rank, position) and parts as a linked list. Stale heap entries
   * are skipped when they surface: an entry counts only while its part still has that pair rank.
   */
  private mergeLong(space: MergeSpace, length: number): number {
    const { table } = this;
    const { bytes, next, previous, pairRank, heap } = space;
    let parts = length;
    let size = 0;
    for (let i = 0; i < length; i++) {
      next[i] = i + 1;
      previous[i] = i - 1;
      const rank = i + 1 < length ? rankOf(table, bytes, i, i + 2) : NO_RANK;
      pairRank[i] = rank;
      if (rank !== NO_RANK) heap[size++] = rank * POSITION_RANGE + i;
    }
    for (let i = (size >> 1) - 1; i >= 0; i--) siftDown(heap, size, i);

    while (size > 0) {
      const key = heap[0]!;
      const rank = Math.floor(key / POSITION_RANGE);
      const at = key - rank * POSITION_RANGE;
      heap[0] = heap[--size]!;
      siftDown(heap, size, 0);
      if (pairRank[at] !== rank) continue;

      const absorbed = next[at]!;
      const after = next[absorbed]!;
      next[at] = after;
      if (after < length) previous[after] = at;
      pairRank[absorbed] = NO_RANK;
      parts--;
      const joined = after < length ? rankOf(table, bytes, at, next[after]!) : NO_RANK;
      pairRank[at] = joined;
      if (joined !== NO_RANK) size = siftUp(heap, size, joined * POSITION_RANGE + at);
      const before = previous[at]!;
      if (before >= 0) {
        const widened = rankOf(table, bytes, before, after);
        pairRank[before] = widened;
        if (widened !== NO_RANK) size = siftUp(heap, size, widened * POSITION_RANGE + before);
      }
    }
    return parts;
  }
}

class MergeSpace {
  readonly bytes: Uint8Array;
  readonly next: Int32Array;
  readonly previous: Int32Array;
  readonly pairRank: Int32Array;
  /** Each merge takes one entry and adds at most two: never more than 2n. */
  readonly heap: Float64Array;

  constructor(bytesMax: number) {
    if (bytesMax > POSITION_RANGE) throw new RangeError(`Piece of ${bytesMax} bytes is too long`);
    this.bytes = new Uint8Array(bytesMax);
    this.next = new Int32Array(bytesMax);
    this.previous = new Int32Array(bytesMax);
    this.pairRank = new Int32Array(bytesMax);
    this.heap = new Float64Array(bytesMax * 2);
  }
}

function siftDown(heap: Float64Array, size: number, from: number): void {
  const key = heap[from]!;
  let at = from;
  for (;;) {
    let child = at * 2 + 1;
    if (child >= size) break;
    if (child + 1 < size && heap[child + 1]! < heap[child]!) child++;
    if (heap[child]! >= key) break;
    heap[at] = heap[child]!;
    at = child;
  }
  heap[at] = key;
}

function siftUp(heap: Float64Array, size: number, key: number): number {
  let at = size;
  while (at > 0) {
    const parent = (at - 1) >> 1;
    if (heap[parent]! <= key) break;
    heap[at] = heap[parent]!;
    at = parent;
  }
  heap[at] = key;
  return size + 1;
}
