import type { PolicyScope } from '@weir/domain';
import { type AdmissionPlan, planAdmission } from './admission-plan.js';
import type { ShardKeys } from './keys.js';

/** Plans kept per path: models × zones. */
const maxPlansPerPath = 64;

/**
 * Plans by path, model and zone, until a calendar period of theirs turns. A path is known by its identity: it lives as
 * long as the policy it belongs to, and its plans go with it.
 */
export class PlanCache {
  private readonly plans = new WeakMap<readonly PolicyScope[], Map<string, AdmissionPlan>>();

  get(
    keys: ShardKeys,
    path: readonly PolicyScope[],
    timeZone: string,
    model: string,
    atMs: number,
  ): AdmissionPlan {
    let plans = this.plans.get(path);
    if (!plans) {
      plans = new Map();
      this.plans.set(path, plans);
    }
    const name = `${timeZone} ${model}`;
    const known = plans.get(name);
    if (known && known.validFromMs <= atMs && atMs < known.validUntilMs) return known;
    const plan = planAdmission(keys, path, timeZone, model, atMs);
    if (plans.size >= maxPlansPerPath) plans.clear();
    plans.set(name, plan);
    return plan;
  }
}
