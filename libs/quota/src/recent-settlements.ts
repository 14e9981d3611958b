import type { Actual, Lease } from './quota-engine.js';

/** A settlement that Redis has confirmed, kept for a while in case Redis loses it. */
export type RecentSettlement = {
  readonly lease: Lease;
  readonly actual: Actual;
  /** The usage event as JSON. */
  readonly event: string;
  /** The calendar fields to charge, as admit had them. */
  readonly descriptor: Buffer;
  readonly epoch: string;
  readonly seq: number;
  readonly atMs: number;
};

/** Redis' append-only file is written out every second; a failover may lose a little more. */
const keepMs = 15_000;
const slabBytes = 1024 * 1024;
const maxSlabs = 64;

/** State, shard and three lengths: of the head, the event and the descriptor. */
const prefixBytes = 1 + 4 * 4;
const kept = 1;
const taken = 0;

type Slab = { readonly bytes: Buffer; used: number; newestMs: number };

/**
 * The last seconds of settlements, bounded in time and memory. They are kept as bytes outside of the heap, in large pieces
 * that are used again and again and never given back: objects that live for seconds are copied by the collector and end as
 * garbage that only a full collection frees, and so does each new piece bring the next full collection closer.
 */
export class RecentSettlements {
  /** The oldest first. */
  private slabs: Slab[] = [];
  private readonly spare: Buffer[] = [];

  add(entry: RecentSettlement): void {
    const { lease, actual, event, descriptor, epoch, seq, atMs } = entry;
    const head = [
      ...[atMs, seq, epoch, lease.id, lease.enterpriseId],
      ...[lease.reservedAtMs, lease.expiresAtMs, lease.periodId, lease.epoch ?? ''],
      ...[actual.inputTokens, actual.outputTokens, actual.costNano],
    ].join(' ');
    // A UTF-16 unit takes three bytes at most; the head is made of ids and numbers.
    const slab = this.room(prefixBytes + head.length + event.length * 3 + descriptor.length, atMs);
    const { bytes } = slab;
    const start = slab.used;
    const eventAt = start + prefixBytes + bytes.write(head, start + prefixBytes, 'latin1');
    const eventBytes = bytes.write(event, eventAt);
    descriptor.copy(bytes, eventAt + eventBytes);
    bytes[start] = kept;
    bytes.writeUInt32LE(lease.shard, start + 1);
    bytes.writeUInt32LE(head.length, start + 5);
    bytes.writeUInt32LE(eventBytes, start + 9);
    bytes.writeUInt32LE(descriptor.length, start + 13);
    slab.used = eventAt + eventBytes + descriptor.length;
    slab.newestMs = Math.max(slab.newestMs, atMs);
  }

  /** Takes out what one shard settled under other epochs than the one given, as far as it is still to be kept. */
  takeOlderThan(shard: number, epoch: string, nowMs: number): RecentSettlement[] {
    const found: RecentSettlement[] = [];
    for (const { bytes, used } of this.slabs) {
      for (let at = 0; at < used; at = endOf(bytes, at)) {
        // Of the other shards, nearly all of what is here, nothing is read: each of them asks for itself.
        if (bytes[at] === taken || bytes.readUInt32LE(at + 1) !== shard) continue;
        const entry = read(bytes, at);
        if (entry.epoch === epoch) continue;
        bytes[at] = taken;
        if (entry.atMs >= nowMs - keepMs) found.push(entry);
      }
    }
    return found;
  }

  /** Bytes of memory held. */
  get heldBytes(): number {
    return [...this.slabs.map(({ bytes }) => bytes), ...this.spare].reduce(
      (sum, { length }) => sum + length,
      0,
    );
  }

  private room(bytesMax: number, nowMs: number): Slab {
    const last = this.slabs.at(-1);
    if (last !== undefined && last.bytes.length - last.used >= bytesMax) return last;
    let expired = this.slabs.findIndex(({ newestMs }) => newestMs >= nowMs - keepMs);
    if (expired === -1) expired = this.slabs.length;
    const gone = this.slabs.splice(0, Math.max(expired, this.slabs.length + 1 - maxSlabs));
    for (const { bytes } of gone) if (bytes.length === slabBytes) this.spare.push(bytes);
    const bytes =
      (bytesMax <= slabBytes ? this.spare.pop() : undefined) ??
      Buffer.allocUnsafeSlow(Math.max(slabBytes, bytesMax));
    const slab = { bytes, used: 0, newestMs: nowMs };
    this.slabs.push(slab);
    return slab;
  }
}

function endOf(bytes: Buffer, at: number): number {
  return (
    at +
    prefixBytes +
    bytes.readUInt32LE(at + 5) +
    bytes.readUInt32LE(at + 9) +
    bytes.readUInt32LE(at + 13)
  );
}

function read(bytes: Buffer, at: number): RecentSettlement {
  const headAt = at + prefixBytes;
  const eventAt = headAt + bytes.readUInt32LE(at + 5);
  const descriptorAt = eventAt + bytes.readUInt32LE(at + 9);
  const [atMs, seq, epoch = '', id = '', enterpriseId = '', ...rest] = bytes
    .toString('latin1', headAt, eventAt)
    .split(' ');
  const [reservedAtMs, expiresAtMs, periodId = '', leaseEpoch = '', ...used] = rest;
  const [inputTokens, outputTokens, costNano = ''] = used;
  return {
    lease: {
      id,
      shard: bytes.readUInt32LE(at + 1),
      enterpriseId,
      reservedAtMs: Number(reservedAtMs),
      expiresAtMs: Number(expiresAtMs),
      periodId,
      ...(leaseEpoch === '' ? {} : { epoch: leaseEpoch }),
    },
    actual: {
      inputTokens: Number(inputTokens),
      outputTokens: Number(outputTokens),
      costNano: BigInt(costNano),
    },
    event: bytes.toString('utf8', eventAt, descriptorAt),
    // A copy: the piece is used again.
    descriptor: Buffer.from(bytes.subarray(descriptorAt, endOf(bytes, at))),
    epoch,
    seq: Number(seq),
    atMs: Number(atMs),
  };
}
