/** How a call at an upstream went, as far as it says something about the upstream's load. */
export type UpstreamSample =
  /** Milliseconds from dispatch to the first token of a stream. */
  | { readonly kind: 'first_token'; readonly ms: number; readonly promptTokens: number }
  /** 429, 503, or no answer in time. */
  | { readonly kind: 'overloaded' };

/** One call at an upstream. Whole answers, clients who leave and errors of the request itself give no sample. */
export type GuardedCall = {
  /** What the call shows of the upstream's load; the first one counts. */
  sample(sample: UpstreamSample): void;
  /** The call has ended. */
  end(): void;
};

const limitMin = 4;
const limitMax = 1_000;
const limitAtFirst = 20;
/** First tokens may take this many times longer than usual before the limit shrinks. */
const tolerance = 2;
/** Share of each step towards the new limit: single slow calls must not swing it. */
const smoothing = 0.2;
/** What is usual follows faster answers by this share of each, and slower ones by this share a second, no matter how many
 * there are: a queue of our own making must not become what is usual. */
const fasterWeight = 0.1;
const slowerPerSecond = 0.005;
const dropFactor = 0.7;
/** A burst of refusals is one sign of overload, not many. */
const dropPauseMs = 1_000;

/**
 * How many calls one upstream serves well at the same time, found by its time to the first token: the gradient of
 * Netflix' concurrency-limits (`Gradient2Limit`). Never by total durations, which depend on how much is written, and per
 * class of prompt sizes, as long prompts take longer before the first token on an idle machine too.
 */
export class AdaptiveLimit {
  private limit = limitAtFirst;
  private running = 0;
  private lastDropMs = Number.NEGATIVE_INFINITY;
  private readonly usual = new Map<number, { ms: number; atMs: number }>();

  constructor(private readonly now: () => number = () => performance.now()) {}

  get hasRoom(): boolean {
    return this.running < Math.floor(this.limit);
  }

  get current(): number {
    return Math.floor(this.limit);
  }

  get inFlight(): number {
    return this.running;
  }

  begin(): GuardedCall {
    this.running += 1;
    const runningThen = this.running;
    let isSampled = false;
    let isOver = false;
    return {
      sample: (sample) => {
        if (isSampled) return;
        isSampled = true;
        if (sample.kind === 'overloaded') this.drop();
        else this.learn(sample.ms, sample.promptTokens, runningThen);
      },
      end: () => {
        if (!isOver) this.running -= 1;
        isOver = true;
      },
    };
  }

  private drop(): void {
    const now = this.now();
    if (now - this.lastDropMs < dropPauseMs) return;
    this.lastDropMs = now;
    this.limit = Math.max(limitMin, this.limit * dropFactor);
  }

  private learn(ms: number, promptTokens: number, runningThen: number): void {
    const sizeClass = Math.floor(Math.log2(Math.max(256, promptTokens)) / 2);
    const usual = this.usualAfter(sizeClass, ms);
    // Below half of its use, good times say nothing of what more would do.
    if (runningThen < this.limit / 2) return;
    const gradient = Math.min(1, Math.max(0.5, (tolerance * usual) / Math.max(ms, 0.1)));
    const room = Math.sqrt(this.limit);
    const aimed = this.limit * gradient + room;
    const next = this.limit + (aimed - this.limit) * smoothing;
    this.limit = Math.min(limitMax, Math.max(limitMin, next));
  }

  /** What is usual for prompts of this size, with this sample taken in. */
  private usualAfter(sizeClass: number, ms: number): number {
    const atMs = this.now();
    const before = this.usual.get(sizeClass) ?? { ms, atMs };
    const drift = (before.ms * slowerPerSecond * (atMs - before.atMs)) / 1_000;
    const next =
      ms < before.ms
        ? before.ms + (ms - before.ms) * fasterWeight
        : Math.min(ms, before.ms + drift);
    this.usual.set(sizeClass, { ms: next, atMs });
    return next;
  }
}
