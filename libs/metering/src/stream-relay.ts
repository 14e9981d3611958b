import type { Cluster, Redis } from 'ioredis';
import type { MeteringLogger } from './logger.js';
import { pause, StoppedError, untilDone } from './retry.js';

/** One entry of a Redis stream, as it stands there. */
export type StreamEntry = {
  readonly shard: number;
  /** Redis' id of the entry, `<milliseconds>-<sequence>`. */
  readonly streamId: string;
  readonly fields: Readonly<Record<string, string>>;
};

export type StreamRelayOptions = {
  readonly redis: Redis | Cluster;
  /** One stream per shard. */
  readonly streams: readonly { readonly shard: number; readonly key: string }[];
  /** All relays of one purpose share the entries of the group. */
  readonly group: string;
  /** Unique per relay: entries are owned by name. */
  readonly consumer: string;
  /** Most entries read from one stream at once; also the bound of memory, times the number of streams. */
  readonly batchMax: number;
  /** An entry that its owner has not acknowledged for this long is taken over. Longer than any delivery takes. */
  readonly claimIdleMs: number;
  /** Resolves once the entries are safe elsewhere; only then they are removed. Rejects to be tried again. */
  readonly deliver: (entries: readonly StreamEntry[]) => Promise<void>;
  readonly logger: MeteringLogger;
  readonly onDelivered?: (count: number) => void;
};

const idlePauseMinMs = 5;
const idlePauseMaxMs = 100;
const faultPauseMs = 100;
const faultPauseMaxMs = 5_000;
/** A consumer that has been away for this long, and owns nothing, is forgotten. */
const forgetConsumerMs = 3_600_000;

/**
 * Carries the entries of several streams to wherever `deliver` puts them, at least once each. Several relays at once
 * share the work; what a dead one had in hand is taken over. An entry is removed only after it was delivered:
 * killed in between, it is delivered again.
 */
export class StreamRelay {
  private readonly stopping = new AbortController();
  private running: Promise<void> | null = null;
  private nextClaimAtMs = 0;
  private hasGroups = false;

  constructor(private readonly options: StreamRelayOptions) {}

  start(): void {
    this.running ??= this.run();
  }

  /** Finishes the batch in hand if that can be delivered now, and ends. What is left is another relay's. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  private async run(): Promise<void> {
    const { signal } = this.stopping;
    let idlePauseMs = idlePauseMinMs;
    while (!signal.aborted) {
      try {
        const count = await untilDone(() => this.relayOnce(), {
          signal,
          firstPauseMs: faultPauseMs,
          pauseMaxMs: faultPauseMaxMs,
          onFailure: (error, failures) => this.noteFailure(error, failures),
          isWorthRetrying: (error) => !(error instanceof StoppedError),
        });
        idlePauseMs = count > 0 ? idlePauseMinMs : Math.min(idlePauseMs * 2, idlePauseMaxMs);
        if (count === 0) await pause(idlePauseMs, signal);
      } catch (error) {
        if (!(error instanceof StoppedError)) throw error;
      }
    }
  }

  private noteFailure(error: unknown, failures: number): void {
    // The server was emptied, or is another one: the groups must be made again.
    if (isNoGroup(error)) this.hasGroups = false;
    const { group, logger } = this.options;
    logger.warn({ err: error, group, failures }, 'the stream cannot be read; trying again');
  }

  private async relayOnce(): Promise<number> {
    await this.ensureGroups();
    const entries = [...(await this.claimStuck()), ...(await this.readNew())];
    if (entries.length === 0) return 0;
    await untilDone(() => this.options.deliver(entries), {
      signal: this.stopping.signal,
      firstPauseMs: faultPauseMs,
      pauseMaxMs: faultPauseMaxMs,
      onFailure: (error, failures) => {
        const { group, logger } = this.options;
        logger.warn(
          { err: error, group, failures, entries: entries.length },
          'entries cannot be delivered; they stay in the stream and are tried again',
        );
      },
    });
    this.options.onDelivered?.(entries.length);
    await this.remove(entries);
    return entries.length;
  }

  private async ensureGroups(): Promise<void> {
    if (this.hasGroups) return;
    for (const { key } of this.options.streams) {
      try {
        // From the beginning: what was written before the first relay started is read too.
        await this.options.redis.xgroup('CREATE', key, this.options.group, '0', 'MKSTREAM');
      } catch (error) {
        if (!(error instanceof Error) || !error.message.startsWith('BUSYGROUP')) throw error;
      }
    }
    this.hasGroups = true;
  }

  private async readNew(): Promise<StreamEntry[]> {
    const { redis, streams, group, consumer, batchMax } = this.options;
    // One command per stream: in a cluster they are on different nodes.
    const replies = await Promise.all(
      streams.map(({ key }) =>
        redis.xreadgroup('GROUP', group, consumer, 'COUNT', batchMax, 'STREAMS', key, '>'),
      ),
    );
    return replies.flatMap((reply, index) => {
      const shard = streams[index]?.shard ?? 0;
      const read = (reply as [string, RawEntry[]][] | null) ?? [];
      return read.flatMap(([, entries]) => toEntries(shard, entries));
    });
  }

  /** What other relays have had in hand for too long: they have died. */
  private async claimStuck(): Promise<StreamEntry[]> {
    const nowMs = Date.now();
    if (nowMs < this.nextClaimAtMs) return [];
    this.nextClaimAtMs = nowMs + this.options.claimIdleMs / 3;
    const { redis, streams, group, consumer, batchMax, claimIdleMs } = this.options;
    const claimed: StreamEntry[] = [];
    for (const { shard, key } of streams) {
      const reply = (await redis.xautoclaim(
        key,
        group,
        consumer,
        claimIdleMs,
        '0-0',
        'COUNT',
        batchMax,
      )) as [string, RawEntry[], ...unknown[]];
      claimed.push(...toEntries(shard, reply[1]));
      await this.forgetDeadConsumers(key);
    }
    if (claimed.length > 0) {
      // A full batch may not be all: look again at once.
      this.nextClaimAtMs = nowMs;
      const { logger } = this.options;
      logger.info({ group, entries: claimed.length }, 'took over entries of a relay that is gone');
    }
    return claimed;
  }

  private async forgetDeadConsumers(key: string): Promise<void> {
    const { redis, group, consumer } = this.options;
    const consumers = (await redis.xinfo('CONSUMERS', key, group)) as unknown[][];
    for (const flat of consumers) {
      const info = pairs(flat);
      if (info['name'] === consumer || Number(info['pending']) > 0) continue;
      if (Number(info['idle']) < forgetConsumerMs) continue;
      await redis.xgroup('DELCONSUMER', key, group, String(info['name']));
    }
  }

  /** Acknowledges and deletes. Should this fail, the entries come again, and whoever receives them dedupes. */
  private async remove(entries: readonly StreamEntry[]): Promise<void> {
    const { redis, streams, group } = this.options;
    await Promise.all(
      streams.map(async ({ shard, key }) => {
        const ids = entries
          .filter((entry) => entry.shard === shard)
          .map(({ streamId }) => streamId);
        if (ids.length === 0) return;
        await redis.xack(key, group, ...ids);
        await redis.xdel(key, ...ids);
      }),
    );
  }
}

type RawEntry = [id: string, fields: string[] | null] | null;

function toEntries(shard: number, raw: readonly RawEntry[]): StreamEntry[] {
  return raw.flatMap((entry) => {
    // Deleted while it was pending: Redis has nothing left of it.
    if (entry === null || entry[1] === null) return [];
    const [streamId, flat] = entry;
    return [{ shard, streamId, fields: pairs(flat) as Record<string, string> }];
  });
}

function pairs(flat: readonly unknown[]): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (let index = 0; index + 1 < flat.length; index += 2) {
    result[String(flat[index])] = flat[index + 1];
  }
  return result;
}

function isNoGroup(error: unknown): boolean {
  return error instanceof Error && error.message.includes('NOGROUP');
}
