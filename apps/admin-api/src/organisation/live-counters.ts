import { Inject, Injectable } from '@nestjs/common';
import { shardOf, type Limit, type ScopeLevel } from '@weir/domain';
import { InjectLogger, type Logger } from '@weir/platform';
import type { QuotaEngine, ScopeUsage } from '@weir/quota';
import type { ControlConfig } from '../config.js';
import { CONTROL_CONFIG, LIVE_ENGINE } from '../tokens.js';

export type LiveScope = {
  readonly level: ScopeLevel;
  readonly id: string;
  readonly name: string;
  readonly limits: readonly Limit[];
};

/** Scopes per round trip, and round trips at once: a large tree must not hold Redis up for the gateways. */
const scopesPerPeek = 250;
const peeksAtOnce = 4;

/** The counters that the gateways decide by, for showing. */
@Injectable()
export class LiveCounters {
  private isAway = false;

  constructor(
    @Inject(LIVE_ENGINE) private readonly engine: Pick<QuotaEngine, 'peek'>,
    @Inject(CONTROL_CONFIG) private readonly config: ControlConfig,
    @InjectLogger() private readonly logger: Logger,
  ) {}

  /** Use by scope id, or null while the counters cannot be read; never waits longer than the live timeout per trip. */
  async read(
    enterprise: { readonly id: string; readonly timeZone: string },
    scopes: readonly LiveScope[],
  ): Promise<ReadonlyMap<string, ScopeUsage> | null> {
    const peek = (from: number) =>
      this.engine.peek({
        shard: shardOf(enterprise.id, this.config.SHARD_COUNT),
        enterpriseId: enterprise.id,
        timeZone: enterprise.timeZone,
        scopes: scopes.slice(from, from + scopesPerPeek),
      });
    const found = new Map<string, ScopeUsage>();
    try {
      for (let from = 0; from < scopes.length; from += scopesPerPeek * peeksAtOnce) {
        const trips: ReturnType<typeof peek>[] = [];
        for (let trip = 0; trip < peeksAtOnce; trip += 1) {
          const start = from + trip * scopesPerPeek;
          if (start < scopes.length) trips.push(peek(start));
        }
        for (const usage of (await Promise.all(trips)).flat()) found.set(usage.scopeId, usage);
      }
    } catch (error) {
      if (!this.isAway) this.logger.warn({ err: error }, 'live counters cannot be read');
      this.isAway = true;
      return null;
    }
    this.isAway = false;
    return found;
  }
}
