import type { Logger } from '@weir/platform';
import type { QuotaRedis } from '@weir/quota';

const beatMs = 1_000;
/** A gateway that has not been heard of for this long is not counted any more. */
const silenceMs = 5_000;

/**
 * How many gateways share this Redis. Without Redis each takes its share of every limit, so the last known number goes on
 * counting: it is only ever read when nothing newer can be had.
 */
export class LiveGateways {
  private known = 1;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly redis: QuotaRedis,
    private readonly id: string,
    private readonly logger: Logger,
  ) {}

  get count(): number {
    return this.known;
  }

  start(): void {
    void this.beat();
    this.timer ??= setInterval(() => void this.beat(), beatMs).unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    this.timer = undefined;
    try {
      await this.redis.client.zrem(this.key, this.id);
    } catch (error) {
      // The others stop counting this one a few seconds later.
      this.logger.debug({ err: error }, 'the gateway could not be signed off');
    }
  }

  private async beat(): Promise<void> {
    try {
      const { client } = this.redis;
      // Redis' clock, as far as it is known: those of the gateways may differ.
      const now = this.redis.storeNow();
      await client.zadd(this.key, now, this.id);
      await client.zremrangebyscore(this.key, '-inf', now - silenceMs);
      this.known = Math.max(1, await client.zcard(this.key));
    } catch (error) {
      this.logger.debug({ err: error }, 'the number of gateways could not be read');
    }
  }

  private get key(): string {
    return `${this.redis.prefix}:gateways`;
  }
}
