/** Sequence numbers per block. A block is one row with a bit per number. */
export const blockSize = 1_000;
const blockBytes = blockSize / 8;

/** The block that a sequence number (from 1) belongs to. */
export function blockOf(seq: number): number {
  return Math.floor((seq - 1) / blockSize);
}

export function emptyBlock(): Uint8Array {
  return new Uint8Array(blockBytes);
}

/** Marks a number as arrived. Returns whether it is the first time. */
export function mark(block: Uint8Array, seq: number): boolean {
  const bit = (seq - 1) % blockSize;
  const index = bit >> 3;
  const mask = 1 << (bit & 7);
  const byte = block[index] ?? 0;
  if ((byte & mask) !== 0) return false;
  block[index] = byte | mask;
  return true;
}

export function isMarked(block: Uint8Array, seq: number): boolean {
  const bit = (seq - 1) % blockSize;
  return ((block[bit >> 3] ?? 0) & (1 << (bit & 7))) !== 0;
}

export function countMarked(block: Uint8Array): number {
  let count = 0;
  for (const byte of block) {
    for (let rest = byte; rest !== 0; rest &= rest - 1) count += 1;
  }
  return count;
}

/**
 * The highest number such that all from `watermark + 1` up to it have arrived.
 *
 * @param block returns a block's bits, or undefined where nothing of it has arrived
 */
export function advanceWatermark(
  watermark: number,
  highest: number,
  block: (index: number) => Uint8Array | undefined,
): number {
  let reached = watermark;
  while (reached < highest) {
    const next = reached + 1;
    const bits = block(blockOf(next));
    if (bits === undefined || !isMarked(bits, next)) break;
    reached = next;
  }
  return reached;
}

export type SequenceRange = { readonly from: number; readonly to: number };

/** The ranges between `watermark` and `highest` that have not arrived, at most `limit` of them. */
export function missingRanges(
  watermark: number,
  highest: number,
  block: (index: number) => Uint8Array | undefined,
  limit: number,
): SequenceRange[] {
  const ranges: SequenceRange[] = [];
  let from: number | null = null;
  for (let seq = watermark + 1; seq <= highest; seq += 1) {
    const bits = block(blockOf(seq));
    const hasArrived = bits !== undefined && isMarked(bits, seq);
    if (!hasArrived) {
      from ??= seq;
      continue;
    }
    if (from === null) continue;
    ranges.push({ from, to: seq - 1 });
    from = null;
    if (ranges.length === limit) return ranges;
  }
  if (from !== null) ranges.push({ from, to: highest });
  return ranges;
}
