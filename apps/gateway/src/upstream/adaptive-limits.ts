import { WeirError } from '@weir/domain';
import { LRUCache } from 'lru-cache';
import { AdaptiveLimit, type GuardedCall } from './adaptive-limit.js';
import { candidateKey, type Candidate } from './choose-upstream.js';

const candidatesMax = 1_000;
const unguarded: GuardedCall = { sample: () => undefined, end: () => undefined };

/** The adaptive limits of all upstreams and models; without effect where the operator has not switched them on. */
export class AdaptiveLimits {
  private readonly limits = new LRUCache<string, AdaptiveLimit>({ max: candidatesMax });

  constructor(private readonly isOn: boolean) {}

  hasRoom(candidate: Candidate): boolean {
    return !this.isOn || this.limitOf(candidate).hasRoom;
  }

  begin(candidate: Candidate): GuardedCall {
    return this.isOn ? this.limitOf(candidate).begin() : unguarded;
  }

  private limitOf(candidate: Candidate): AdaptiveLimit {
    const key = candidateKey(candidate);
    let limit = this.limits.get(key);
    if (limit === undefined) {
      limit = new AdaptiveLimit();
      this.limits.set(key, limit);
    }
    return limit;
  }
}

/** The answer where every upstream of a model has as many calls as it serves well. */
export function busy(model: string): WeirError {
  return new WeirError(
    'unavailable',
    `The providers of the model "${model}" are busy. Try again in a second.`,
    { headers: { 'retry-after': '1' } },
  );
}
