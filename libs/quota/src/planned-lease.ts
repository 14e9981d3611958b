import type { AdmissionPlan } from './admission-plan.js';
import type { AdmitCall, Lease } from './quota-engine.js';

/**
 * A lease with the call and the plan that it was admitted by. They are with the lease rather than in a map by its id: they
 * go when the call goes, and nothing has to be looked up, bounded or forgotten. A copy of a lease, or one that was written
 * down and read again, has neither.
 */
export class PlannedLease implements Lease {
  readonly id: string;
  readonly shard: number;
  readonly enterpriseId: string;
  readonly periodId: string;
  readonly #call: AdmitCall;
  readonly #plan: AdmissionPlan;
  readonly #admittedBy: object;

  constructor(
    call: AdmitCall,
    readonly reservedAtMs: number,
    readonly expiresAtMs: number,
    readonly epoch: string,
    plan: AdmissionPlan,
    admittedBy: object,
  ) {
    this.id = call.leaseId;
    this.shard = call.shard;
    this.enterpriseId = call.enterpriseId;
    this.periodId = plan.month.id;
    this.#call = call;
    this.#plan = plan;
    this.#admittedBy = admittedBy;
  }

  /** The plan of a lease that `engine` itself admitted; null where another did, or where it is a copy. */
  static planOf(lease: Lease, engine: object): AdmissionPlan | null {
    return #plan in lease && lease.#admittedBy === engine ? lease.#plan : null;
  }

  /** The call of a lease that this process admitted; else null. */
  static callOf(lease: Lease): AdmitCall | null {
    return #call in lease ? lease.#call : null;
  }
}
