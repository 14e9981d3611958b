import type { Lease } from './quota-engine.js';
import type { QuotaRedis } from './quota-redis.js';

type Owed = {
  readonly lease: Pick<Lease, 'id' | 'shard' | 'enterpriseId'>;
  /** On which connection its void was sent last, and as the how-manieth. */
  connection: number;
  order: number;
};

const retryMs = 200;

/** With more than that the store has been away for long; each of the rest expires by itself. */
const maxOwed = 10_000;

/**
 * Admits that got no answer and may run still. Each is owed a void: right behind it on the same connection, where Redis
 * runs them in that order, or, if that connection dies, on the next one. Otherwise the reaper would charge the prompt of a
 * call that was never sent.
 */
export class UnansweredAdmits {
  private readonly owed = new Map<string, Owed>();
  private timer: NodeJS.Timeout | null = null;
  private sent = 0;

  constructor(
    private readonly redis: QuotaRedis,
    private readonly voidLease: (lease: Owed['lease']) => Promise<void>,
  ) {}

  get size(): number {
    return this.owed.size;
  }

  add(lease: Owed['lease']): void {
    if (this.owed.size >= maxOwed) return;
    const owed = { lease, connection: 0, order: 0 };
    this.owed.set(lease.id, owed);
    this.send(owed);
  }

  private send(owed: Owed): void {
    this.sent += 1;
    owed.order = this.sent;
    owed.connection = this.redis.connectionNumber;
    const { connection, order } = owed;
    this.voidLease(owed.lease).then(
      () => this.answered(connection, order),
      (error: unknown) => {
        this.redis.logger.warn(
          { leaseId: owed.lease.id, error: error instanceof Error ? error.message : String(error) },
          'the void of an unanswered admit got no answer either',
        );
        this.sendLater();
      },
    );
  }

  /** What was sent on the same connection before what is answered now has run before it. */
  private answered(connection: number, order: number): void {
    for (const [id, owed] of this.owed) {
      if (owed.connection === connection && owed.order <= order) this.owed.delete(id);
    }
  }

  private sendLater(): void {
    if (this.timer || this.redis.isClosed) return;
    this.timer = setTimeout(() => {
      this.timer = null;
      if (this.redis.isClosed || this.owed.size === 0) return;
      this.sendAgain();
    }, retryMs);
    this.timer.unref();
  }

  private sendAgain(): void {
    const { connectionNumber, client } = this.redis;
    const owed = client.status === 'ready' ? [...this.owed.values()] : [];
    const lost = owed.filter(({ connection }) => connection !== connectionNumber);
    // On the same connection all are under way already: asking for the last one tells of all of them.
    for (const each of lost.length > 0 ? lost : owed.slice(-1)) this.send(each);
    if (owed.length === 0) this.sendLater();
  }
}
