import { newId, type CallerPolicy, type Clock, type RefusalEvent } from '@weir/domain';
import type { Logger } from '@weir/platform';
import type { GatewayMetrics } from './gateway-metrics.js';

/** Appends to the capped refusal stream of a shard. */
export type RefusalSink = (shard: number, events: readonly string[]) => Promise<void>;

const bufferMax = 10_000;
const batchMax = 200;
const flushMs = 250;

/**
 * Refused and failed calls, for operators. Written in batches beside the request path; what does not fit or cannot be
 * written is counted and dropped, as no money hangs on it.
 */
export class RefusalLog {
  private readonly waiting: { shard: number; event: string }[] = [];
  private timer: NodeJS.Timeout | undefined;
  private flushing: Promise<void> | null = null;

  constructor(
    private readonly sink: RefusalSink,
    private readonly metrics: GatewayMetrics,
    private readonly logger: Logger,
    private readonly clock: Clock,
  ) {}

  record(policy: CallerPolicy, event: Omit<RefusalEvent, 'id' | 'at' | keyof CallerNames>): void {
    this.metrics.refusal(event);
    if (this.waiting.length >= bufferMax) {
      this.metrics.refusalsDropped(1);
      return;
    }
    const now = this.clock.now();
    const whole: RefusalEvent = {
      id: newId(now),
      at: new Date(now).toISOString(),
      ...callerNames(policy),
      ...event,
    };
    this.waiting.push({ shard: policy.shard, event: JSON.stringify(whole) });
    this.timer ??= setTimeout(() => void this.flush(), flushMs).unref();
  }

  /** Writes what waits. Called by the timer and at shutdown. */
  async flush(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.flushing ??= this.writeAll().finally(() => {
      this.flushing = null;
    });
    await this.flushing;
  }

  private async writeAll(): Promise<void> {
    while (this.waiting.length > 0) {
      const batch = this.waiting.splice(0, batchMax);
      const byShard = new Map<number, string[]>();
      for (const { shard, event } of batch) {
        const events = byShard.get(shard);
        if (events === undefined) byShard.set(shard, [event]);
        else events.push(event);
      }
      for (const [shard, events] of byShard) {
        try {
          await this.sink(shard, events);
        } catch (error) {
          this.metrics.refusalsDropped(events.length);
          this.logger.warn(
            { err: error, dropped: events.length },
            'refusal events could not be written',
          );
        }
      }
    }
  }
}

type CallerNames = Pick<RefusalEvent, 'enterprise' | 'departments' | 'user' | 'key'>;

const namesByPolicy = new WeakMap<CallerPolicy, CallerNames>();

/** The names on a caller's path as they are now. */
export function callerNames(policy: CallerPolicy): CallerNames {
  let names = namesByPolicy.get(policy);
  if (names === undefined) {
    names = readNames(policy);
    namesByPolicy.set(policy, names);
  }
  return names;
}

function readNames(policy: CallerPolicy): CallerNames {
  const named = policy.path.map(({ level, id, name }) => ({ level, ref: { id, name } }));
  const one = (level: string) => {
    const found = named.find((scope) => scope.level === level);
    if (found === undefined) throw new Error(`the path of key ${policy.key.id} has no ${level}`);
    return found.ref;
  };
  return {
    enterprise: one('enterprise'),
    departments: named.filter(({ level }) => level === 'department').map(({ ref }) => ref),
    user: one('user'),
    key: one('key'),
  };
}
