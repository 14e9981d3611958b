import { Inject, Injectable } from '@nestjs/common';
import type { Clock } from '@weir/domain';
import { inControlChange, type AuditRecord, type Database, type Prisma } from '@weir/persistence';
import type { Actor } from '../access/actor.js';
import { CLOCK, DATABASE } from '../tokens.js';
import { PolicyPublication } from './policy-publication.js';

export type ChangeBy = { readonly actor: Actor; readonly requestId: string };

/** The one way to change anything: rows and audit in one transaction, then publishing. */
@Injectable()
export class Changes {
  constructor(
    @Inject(DATABASE) private readonly database: Database,
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly publication: PolicyPublication,
  ) {}

  /**
   * Runs `work` in the enterprise's next change and publishes what it recorded. Once this returns, the change is
   * stored. Whether it is in force already (Redis may be away) the answer's `x-policy-state` header says.
   */
  async run<Result>(
    by: ChangeBy,
    work: (
      tx: Prisma.TransactionClient,
      record: (entry: AuditRecord) => void,
      at: Date,
    ) => Promise<Result>,
  ): Promise<Result> {
    const { enterpriseId, userId, name } = by.actor;
    const at = new Date(this.clock.now());
    const result = await inControlChange(
      this.database.prisma,
      { enterpriseId, actor: { id: userId, name }, requestId: by.requestId, at },
      (tx, record) => work(tx, record, at),
    );
    await this.publication.publishNow(enterpriseId);
    return result;
  }
}
