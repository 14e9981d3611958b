import { createHash } from 'node:crypto';
import { type Clock, shardTag, systemClock, WeirError } from '@weir/domain';
import { Cluster, Redis } from 'ioredis';
import { ShardKeys } from './keys.js';
import { type Fenced, ScriptCommand } from './script-command.js';
import { type ScriptName, type ScriptSources, shippedScripts } from './script-sources.js';

export type QuotaLogger = {
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
};

export type QuotaRedisOptions = {
  /** Such as `redis://127.0.0.1:6379/0`. With `cluster`, any node of the cluster. */
  readonly url: string;
  /** First part of every key; default `weir`. */
  readonly prefix?: string;
  /** Fixed for the life of an installation; a shard that was made with another count is refused. */
  readonly shardCount: number;
  /** How long a command may take before it is given up; 50 on the data plane. */
  readonly commandTimeoutMs?: number;
  readonly cluster?: boolean;
  readonly clock?: Clock;
  readonly logger?: QuotaLogger;
  /** For tests only: other scripts than the shipped ones (a movable clock, a planted fault). */
  readonly scripts?: ScriptSources;
};

/** A script's reply: a text in bytes, or a list of such. */
export type ScriptReply = Buffer | readonly unknown[];

/** A script's reply, and the epoch that it ran under. */
export type FencedReply = { readonly reply: ScriptReply; readonly epoch: string };

export type Fence = {
  readonly epoch: string;
  /** Whether the running server process is the one that the epoch was declared on. */
  readonly sameRun: boolean;
  readonly shardCount: number | null;
  readonly runId: string;
  /** Sequence number of the shard's last event. */
  readonly seq: number;
  /** Up to where the counters hold the events of earlier epochs. */
  readonly counted: { readonly epoch: string; readonly seq: number };
};

const reconfirmMs = 250;
/** A timer that comes this late says that this process was busy. */
const timerSlackMs = 5;

const silent: QuotaLogger = { warn: () => undefined, error: () => undefined };

/**
 * Connects to the Redis that holds the quotas. Returns at once; the connection is made (and remade) in the background,
 * and until it stands every operation rejects with `quota_unavailable`.
 */
export function connectQuotaRedis(options: QuotaRedisOptions): QuotaRedis {
  return new QuotaRedis(options);
}

/**
 * The one connection of a process to the quota store, the scripts on it, and what the process knows of each shard's
 * epoch. Nothing is queued while disconnected and nothing is sent twice: a script that was sent may have run.
 */
export class QuotaRedis {
  readonly prefix: string;
  readonly shardCount: number;
  readonly clock: Clock;
  readonly logger: QuotaLogger;
  readonly client: Redis | Cluster;
  private readonly commandTimeoutMs: number;
  private readonly scripts: Readonly<Record<ScriptName, { source: string; sha: string }>>;
  private readonly shardKeys: ShardKeys[] = [];
  private readonly knownEpochs = new Map<number, string>();
  /** The last epoch ever confirmed, kept over a lost connection to see whether the next one is another. */
  private readonly lastEpochs = new Map<number, string>();
  private readonly epochListeners = new Set<(shard: number, fence: Fence) => void>();
  private reconfirmTimer: NodeJS.Timeout | null = null;
  private storeOffsetMs = 0;
  private closed = false;
  private connections = 0;
  private isGathering = false;

  constructor(private readonly options: QuotaRedisOptions) {
    this.prefix = options.prefix ?? 'weir';
    if (/[{}\s]/.test(this.prefix)) {
      throw new RangeError('a key prefix must not contain braces or blanks');
    }
    if (!Number.isInteger(options.shardCount) || options.shardCount < 1) {
      throw new RangeError('shardCount must be a positive integer');
    }
    this.shardCount = options.shardCount;
    this.clock = options.clock ?? systemClock;
    this.logger = options.logger ?? silent;
    this.commandTimeoutMs = options.commandTimeoutMs ?? 50;
    this.scripts = Object.fromEntries(
      Object.entries(options.scripts ?? shippedScripts).map(([name, source]) => [
        name,
        { source, sha: createHash('sha1').update(source).digest('hex') },
      ]),
    ) as Record<ScriptName, { source: string; sha: string }>;
    this.client = this.connect();
  }

  /** Waits until the connection stands. Rejects with `quota_unavailable` after `timeoutMs`. */
  async ready(timeoutMs = 5_000): Promise<void> {
    if (this.client.status === 'ready') return;
    await new Promise<void>((resolve, reject) => {
      const onReady = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        this.client.off('ready', onReady);
        reject(new WeirError('quota_unavailable', `no connection to Redis within ${timeoutMs} ms`));
      }, timeoutMs);
      this.client.once('ready', onReady);
    });
  }

  async close(): Promise<void> {
    this.epochListeners.clear();
    if (this.reconfirmTimer) clearTimeout(this.reconfirmTimer);
    this.reconfirmTimer = null;
    this.closed = true;
    this.client.disconnect();
    await Promise.resolve();
  }

  keys(shard: number): ShardKeys {
    const known = this.shardKeys[shard];
    if (known) return known;
    if (!Number.isInteger(shard) || shard < 0 || shard >= this.shardCount) {
      throw new RangeError(`no shard ${shard}: there are ${this.shardCount}`);
    }
    const keys = new ShardKeys(this.prefix, shard);
    this.shardKeys[shard] = keys;
    return keys;
  }

  /** Redis' clock as far as known: ours plus the offset last seen. The scripts decide by Redis' own clock. */
  storeNow(): number {
    return this.clock.now() + this.storeOffsetMs;
  }

  noteStoreTime(nowMs: number): void {
    this.storeOffsetMs = nowMs - this.clock.now();
  }

  /** Called when a shard is found to have another epoch than the last one that this process knew. */
  onEpochChange(listener: (shard: number, fence: Fence) => void): void {
    this.epochListeners.add(listener);
  }

  /** How many connections have stood so far: tells whether what was sent earlier went over the present one. */
  get connectionNumber(): number {
    return this.connections;
  }

  get isClosed(): boolean {
    return this.closed;
  }

  /** A second connection for subscriptions, without the data plane's timeouts. */
  subscriber(): Redis | Cluster {
    return this.connect({ subscriber: true });
  }

  /**
   * Runs a script of one shard under the epoch that this process knows, given as the first key and argument. Where the
   * shard has another epoch, that is checked and the script run again, once: it had done nothing.
   *
   * @throws WeirError `quota_unavailable`
   */
  async runFenced(
    name: ScriptName,
    shard: number,
    keys: readonly string[],
    args: readonly (string | Buffer)[],
  ): Promise<FencedReply> {
    const key = this.keys(shard).epoch;
    let epoch = this.knownEpochs.get(shard) ?? '';
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const reply = await this.run(name, keys, args, { key, epoch });
      if (!Buffer.isBuffer(reply) || reply[0] !== 0x45 /* E */) return { reply, epoch };
      epoch = await this.confirmEpoch(shard);
    }
    throw new WeirError('quota_unavailable', `shard ${shard} keeps changing its epoch`, { shard });
  }

  /** Runs a script. Every failure is `quota_unavailable`: whoever asks decides by its degraded mode. */
  run(
    name: ScriptName,
    keys: readonly string[],
    args: readonly (string | Buffer)[],
    fence: Fenced | null = null,
  ): Promise<ScriptReply> {
    const { sha, source } = this.scripts[name];
    return this.send(new ScriptCommand('evalsha', sha, keys, args, fence)).catch(
      async (error: unknown) => {
        if (!isNoScript(error)) throw unavailable(name, error);
        try {
          // Redis was restarted or its scripts flushed. EVAL runs and caches; the failed EVALSHA had run nothing.
          return await this.send(new ScriptCommand('eval', source, keys, args, fence));
        } catch (again) {
          throw unavailable(name, again);
        }
      },
    );
  }

  private send(command: ScriptCommand): Promise<ScriptReply> {
    this.gatherWrites();
    return this.withinTimeout(this.client.sendCommand(command) as Promise<ScriptReply>);
  }

  /**
   * Gives up on a reply after the command timeout. ioredis' own timeout is not used: in a process that was busy itself,
   * timers are due before what came meanwhile is read, and a burst of calls would look like a dead Redis. So the time
   * that the timer came late is granted once more, and the socket is read before giving up.
   */
  withinTimeout<T>(reply: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        setImmediate(() => reject(new Error(`timed out after ${this.commandTimeoutMs} ms`)));
      };
      const dueMs = performance.now() + this.commandTimeoutMs;
      let timer = setTimeout(() => {
        const lateMs = performance.now() - dueMs;
        if (lateMs < timerSlackMs) giveUp();
        else timer = setTimeout(giveUp, Math.min(lateMs, this.commandTimeoutMs));
      }, this.commandTimeoutMs);
      reply.then(
        (value) => {
          clearTimeout(timer);
          resolve(value);
        },
        (error: unknown) => {
          clearTimeout(timer);
          reject(error as Error);
        },
      );
    });
  }

  /** What the shard says of itself. */
  async fence(shard: number): Promise<Fence> {
    const keys = this.keys(shard);
    const reply = await this.run('fence', [keys.epoch, keys.meta, keys.seq], []);
    const [epoch = '', sameRun = '', shardCount = '', runId = '', seq = '0', ...counted] = (
      reply as readonly Buffer[]
    ).map((value) => value.toString());
    return {
      epoch,
      sameRun: sameRun === '1',
      shardCount: shardCount === '' ? null : Number(shardCount),
      runId,
      seq: Number(seq),
      counted: { epoch: counted[0] ?? '', seq: Number(counted[1] ?? 0) },
    };
  }

  /** The epoch this process last confirmed, or null. */
  knownEpoch(shard: number): string | null {
    return this.knownEpochs.get(shard) ?? null;
  }

  /** Asks the shard for its epoch and trusts it only if it was declared on the server process that runs now. */
  async confirmEpoch(shard: number): Promise<string> {
    const fence = await this.fence(shard);
    if (fence.epoch === '' || !fence.sameRun) {
      this.knownEpochs.delete(shard);
      throw new WeirError(
        'quota_unavailable',
        fence.epoch === ''
          ? `shard ${shard} has no epoch yet: its counters are being rebuilt`
          : `Redis has restarted since shard ${shard}'s epoch was declared: its counters are being checked`,
        { shard, reason: 'epoch' },
      );
    }
    if (fence.shardCount !== this.shardCount) {
      this.logger.error(
        { shard, configured: this.shardCount, stored: fence.shardCount },
        'the shard count differs from the one this installation was made with',
      );
      throw new WeirError(
        'quota_unavailable',
        `this installation has ${fence.shardCount} shards, the configuration says ${this.shardCount}`,
        { shard, reason: 'shard_count' },
      );
    }
    this.knownEpochs.set(shard, fence.epoch);
    const before = this.lastEpochs.get(shard);
    this.lastEpochs.set(shard, fence.epoch);
    if (before !== undefined && before !== fence.epoch) {
      for (const listener of this.epochListeners) listener(shard, fence);
    }
    return fence.epoch;
  }

  /**
   * Calls that are made in the same turn of the event loop leave in one write, once all sockets that had something to say
   * were read: saves a system call for each, here and in Redis. On an idle gateway a turn is over in microseconds.
   */
  private gatherWrites(): void {
    if (this.isGathering || this.client instanceof Cluster || this.client.status !== 'ready')
      return;
    const { stream } = this.client;
    this.isGathering = true;
    stream.cork();
    setImmediate(() => {
      this.isGathering = false;
      stream.uncork();
    });
  }

  /**
   * Goes ahead of everything else on a new connection, so that no call finds its script missing and is overtaken by later
   * ones. Where it does not succeed, and in a cluster, whose nodes come and go, `run` sends a missing script itself.
   */
  private loadScripts(): void {
    const { client } = this;
    if (client instanceof Cluster) return;
    void Promise.allSettled(
      Object.values(this.scripts).map(({ source }) => client.script('LOAD', source)),
    );
  }

  /** Looks after a reconnect, until done, whether the shards this process works with have new epochs. */
  private reconfirm(): void {
    if (this.reconfirmTimer) clearTimeout(this.reconfirmTimer);
    this.reconfirmTimer = null;
    const open = [...this.lastEpochs.keys()].filter((shard) => !this.knownEpochs.has(shard));
    if (open.length === 0 || this.closed) return;
    void Promise.allSettled(open.map((shard) => this.confirmEpoch(shard))).then((results) => {
      if (this.closed || results.every(({ status }) => status === 'fulfilled')) return;
      this.reconfirmTimer = setTimeout(() => this.reconfirm(), reconfirmMs);
      this.reconfirmTimer.unref();
    });
  }

  private connect({ subscriber = false } = {}): Redis | Cluster {
    const url = new URL(this.options.url);
    const common = {
      connectionName: `weir-quota${subscriber ? '-subscriber' : ''}`,
      ...(url.username === '' ? {} : { username: decodeURIComponent(url.username) }),
      ...(url.password === '' ? {} : { password: decodeURIComponent(url.password) }),
      ...(url.protocol === 'rediss:' ? { tls: {} } : {}),
      connectTimeout: 1_000,
      keepAlive: 10_000,
      autoResubscribe: true,
      // A script that was sent may have run: it is never sent again on our behalf.
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
    };
    const backoff = (attempt: number): number =>
      Math.min(1_000, 50 * 2 ** Math.min(attempt, 5)) * (0.75 + Math.random() / 2);
    const node = { host: url.hostname, port: Number(url.port === '' ? 6379 : url.port) };
    const client = this.options.cluster
      ? new Cluster([node], {
          redisOptions: common,
          enableOfflineQueue: subscriber,
          clusterRetryStrategy: backoff,
          slotsRefreshTimeout: 1_000,
          maxRedirections: 4,
        })
      : new Redis({
          ...common,
          ...node,
          db: Number(url.pathname.slice(1) || '0'),
          enableOfflineQueue: subscriber,
          retryStrategy: backoff,
        });
    client.on('error', (error: Error) => {
      this.logger.warn({ error: error.message }, 'the connection to Redis failed');
    });
    client.on('ready', () => {
      if (subscriber) return;
      this.connections += 1;
      this.loadScripts();
      this.reconfirm();
    });
    client.on('close', () => {
      // Another server process may answer next time: what was known of the epochs has to be confirmed again.
      if (!subscriber) this.knownEpochs.clear();
    });
    if (client instanceof Cluster && !subscriber) {
      client.on('+node', () => this.knownEpochs.clear());
      client.on('-node', () => this.knownEpochs.clear());
    }
    return client;
  }
}

/** `not_sent` is certain not to have run; after the others nobody knows. */
function reasonOf(message: string): 'timeout' | 'not_sent' | 'connection' {
  if (/timed out/i.test(message)) return 'timeout';
  return /enableOfflineQueue/.test(message) ? 'not_sent' : 'connection';
}

function isNoScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}

function unavailable(script: ScriptName, cause: unknown): WeirError {
  const message = cause instanceof Error ? cause.message : String(cause);
  return new WeirError(
    'quota_unavailable',
    `quota script ${script} failed: ${message}`,
    { script, reason: reasonOf(message) },
    { cause },
  );
}

/** The key that holds a shard's clock under `withMovableClock`; milliseconds. For tests only. */
export function storeClockKey(prefix: string, shard: number): string {
  return `${prefix}:${shardTag(shard)}:test-clock`;
}
