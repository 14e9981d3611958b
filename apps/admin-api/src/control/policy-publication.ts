import { Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import type { Clock } from '@weir/domain';
import {
  enterprisesWithPendingPolicies,
  markPoliciesLost,
  publishPolicies,
  type Database,
} from '@weir/persistence';
import { InjectLogger, Shutdown, type Logger } from '@weir/platform';
import type { PolicyPublisher } from '@weir/quota';
import { CLOCK, DATABASE, POLICY_PUBLISHER } from '../tokens.js';

const retryEveryMs = 1_000;
/** Enterprises caught up per round; the rest follow in the next. */
const enterprisesPerRound = 50;
const nilId = '00000000-0000-0000-0000-000000000000';

/**
 * Brings committed changes into force. What is committed but not in Redis is written in Postgres itself (audit entries
 * above `policy_version`), so it does not matter which process made the change or whether that process still lives:
 * every API process looks for such changes once a second and publishes them.
 */
@Injectable()
export class PolicyPublication implements OnApplicationBootstrap {
  private timer: NodeJS.Timeout | undefined;
  private round: Promise<void> | undefined;
  /** Enterprises whose last attempt failed; one log line per outage, not one per second. */
  private readonly failing = new Set<string>();
  private lastChecked = nilId;
  private roundFailed = false;

  constructor(
    @Inject(DATABASE) private readonly database: Database,
    @Inject(POLICY_PUBLISHER)
    private readonly publisher: Pick<PolicyPublisher, 'publish' | 'republish' | 'version'>,
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly shutdown: Shutdown,
    @InjectLogger() private readonly logger: Logger,
  ) {}

  onApplicationBootstrap(): void {
    const next = (): void => {
      this.round = this.catchUp().finally(() => {
        if (!this.shutdown.signal.aborted) this.timer = setTimeout(next, retryEveryMs);
      });
    };
    next();
    this.shutdown.onClose('stop-intake', 'policy publication', async () => {
      clearTimeout(this.timer);
      await this.round;
    });
  }

  /**
   * Publishes the enterprise's outstanding changes. A failure is not the caller's: the change is stored and tried again.
   * While it fails only the rounds try: a Redis that does not answer must not make every editor wait for it.
   */
  async publishNow(enterpriseId: string): Promise<void> {
    if (!this.failing.has(enterpriseId)) await this.attempt(enterpriseId);
  }

  private async attempt(enterpriseId: string): Promise<void> {
    try {
      const nowMs = this.clock.now();
      await publishPolicies(this.database.prisma, this.publisher, enterpriseId, { nowMs });
      if (this.failing.delete(enterpriseId)) {
        this.logger.info({ enterprise_id: enterpriseId }, 'policy changes are in force again');
      }
    } catch (error) {
      if (!this.failing.has(enterpriseId)) {
        this.logger.warn(
          { err: error, enterprise_id: enterpriseId },
          'policy changes are stored but not in force yet; trying again every second',
        );
      }
      this.failing.add(enterpriseId);
    }
  }

  /** Whether all that this process tried to publish of the enterprise is in Redis. */
  isInForce(enterpriseId: string): boolean {
    return !this.failing.has(enterpriseId);
  }

  /** One round: publishes what is outstanding, whoever committed it, and all of enterprises that Redis has lost. */
  async catchUp(): Promise<void> {
    const { prisma } = this.database;
    try {
      const pending = await enterprisesWithPendingPolicies(prisma, enterprisesPerRound);
      for (const enterpriseId of new Set([...pending, ...this.failing])) {
        await this.attempt(enterpriseId);
      }
      const some = await prisma.enterprise.findMany({
        where: { id: { gt: this.lastChecked }, policyVersion: { gt: 0 } },
        orderBy: { id: 'asc' },
        take: enterprisesPerRound,
        select: { id: true },
      });
      this.lastChecked = some.length < enterprisesPerRound ? nilId : (some.at(-1)?.id ?? nilId);
      for (const { id } of some) await this.restoreIfLost(id);
    } catch (error) {
      if (!this.roundFailed)
        this.logger.warn({ err: error }, 'a round of policy publication failed');
      this.roundFailed = true;
      return;
    }
    this.roundFailed = false;
  }

  private async restoreIfLost(enterpriseId: string): Promise<void> {
    if ((await this.publisher.version(enterpriseId)) !== null) return;
    this.logger.warn({ enterprise_id: enterpriseId }, 'Redis has no policies: writing all again');
    await markPoliciesLost(this.database.prisma, enterpriseId);
    await this.attempt(enterpriseId);
  }
}
