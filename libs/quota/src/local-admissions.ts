import type { UsageEventDraft } from '@weir/domain';
import type { EventSpool } from './event-spool.js';
import type { Lease } from './quota-engine.js';

/** A call that the local engine admitted: all that is needed to charge it if its process dies. */
export type LocalAdmission = {
  readonly lease: Lease;
  readonly draft: UsageEventDraft;
  /** Tokens of the prompt as reserved; charged when nobody is left to say what was used. */
  readonly inputTokens: number;
  /** The calendar fields that the call is to be charged in. */
  readonly descriptor: Buffer;
};

/** A line of the journal. */
type JournalLine =
  | { readonly began: Omit<LocalAdmission, 'descriptor'> & { readonly descriptor: string } }
  | { readonly ended: string };

/**
 * The calls that this gateway admitted without Redis and that have not ended, in memory and on the disk. Their leases are
 * in no Redis, so no reaper would find them: what a killed process leaves open here is charged by the next one.
 *
 * The files grow while Redis is away, by one line when a call begins and one when it ends, and are deleted whenever no
 * such call is in flight.
 */
export class LocalAdmissions {
  private readonly open = new Map<string, LocalAdmission>();

  private constructor(private readonly files: EventSpool) {}

  /** Reads what an earlier process left. `files` is opened on a folder of its own; this closes it. */
  static async load(files: EventSpool): Promise<LocalAdmissions> {
    const admissions = new LocalAdmissions(files);
    await files.read((value) => {
      const line = value as JournalLine;
      if ('ended' in line) {
        admissions.open.delete(line.ended);
      } else {
        const descriptor = Buffer.from(line.began.descriptor, 'base64');
        admissions.open.set(line.began.lease.id, { ...line.began, descriptor });
      }
    });
    return admissions;
  }

  get isFull(): boolean {
    return this.files.isFull;
  }

  /** Everything open, the oldest first. Right after loading: the calls of processes that have died. */
  list(): readonly LocalAdmission[] {
    return [...this.open.values()];
  }

  get(leaseId: string): LocalAdmission | undefined {
    return this.open.get(leaseId);
  }

  /** On the disk when this resolves: only then may the call be sent. Rejects when the disk does not take it. */
  async begin(admission: LocalAdmission): Promise<void> {
    const { id } = admission.lease;
    this.open.set(id, admission);
    try {
      await this.files.append({
        began: { ...admission, descriptor: admission.descriptor.toString('base64') },
      } satisfies JournalLine);
    } catch (error) {
      this.open.delete(id);
      throw error;
    }
  }

  /** The call was voided, or its settlement is safe elsewhere. */
  async end(leaseId: string): Promise<void> {
    if (!this.open.delete(leaseId)) return;
    const isLast = this.open.size === 0;
    if (isLast && (await this.files.clear(() => this.open.size === 0))) return;
    await this.files.append({ ended: leaseId } satisfies JournalLine);
  }

  close(): Promise<void> {
    return this.files.close();
  }
}
