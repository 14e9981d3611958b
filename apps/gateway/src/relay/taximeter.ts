import { nanoFromPico } from '@weir/domain';
import type { QuotaEngine, Violation } from '@weir/quota';
import type { LiveCall } from '../settlement/live-call.js';

export type TaximeterVerdict =
  | { readonly kind: 'go' }
  | {
      readonly kind: 'stop';
      readonly reason: 'budget' | 'expired' | 'unavailable';
      readonly violations: readonly Violation[];
    };

const go: TaximeterVerdict = { kind: 'go' };

/**
 * Reserves more output while a stream without a cap runs. The next instalment is asked for when a quarter of the last
 * one is left, and the stream only waits for the answer once all of it is used: so it never delivers more than it has
 * reserved, but for what one upstream chunk holds.
 */
export class Taximeter {
  private reservedTokens: number;
  private asking: Promise<TaximeterVerdict> | null = null;
  private verdict: TaximeterVerdict = go;
  private uncheckedCharacters = 0;

  constructor(
    private readonly engine: QuotaEngine,
    private readonly call: LiveCall,
    private readonly plan: {
      /** Output tokens reserved at admission. */
      readonly reservedTokens: number;
      readonly instalmentTokens: number;
      /** The model can give no more than this. */
      readonly ceilingTokens: number;
      readonly picoPerToken: bigint;
    },
  ) {
    this.reservedTokens = plan.reservedTokens;
  }

  noteDelivered(characters: number): void {
    this.uncheckedCharacters += characters;
  }

  /**
   * Whether enough was delivered since the last check that another one is due. Counting after every delta would be work
   * for nothing: a few characters are a few tokens.
   */
  get isDue(): boolean {
    return this.uncheckedCharacters >= Math.min(64, this.plan.instalmentTokens / 8);
  }

  /** Whether the stream may go on. Waits for the answer only when the reservation is used up. */
  async check(): Promise<TaximeterVerdict> {
    this.uncheckedCharacters = 0;
    if (this.verdict.kind === 'stop') return this.verdict;
    if (this.reservedTokens >= this.plan.ceilingTokens) return go;
    const used = this.call.delivered.tokensSoFar();
    const left = this.reservedTokens - used;
    if (left > this.plan.instalmentTokens / 4) return go;
    this.asking ??= this.ask();
    if (left > 0) return go;
    return this.asking;
  }

  private async ask(): Promise<TaximeterVerdict> {
    const tokens = Math.min(
      this.plan.instalmentTokens,
      this.plan.ceilingTokens - this.reservedTokens,
    );
    const costNano = nanoFromPico(BigInt(tokens) * this.plan.picoPerToken);
    try {
      const answer = await this.engine.extend(this.call.lease, {
        outputTokens: tokens,
        costNano,
        observed: this.call.observed(),
      });
      if (answer.outcome === 'granted') this.reservedTokens += tokens;
      else if (answer.outcome === 'refused') {
        this.verdict = { kind: 'stop', reason: 'budget', violations: answer.violations };
      } else this.verdict = { kind: 'stop', reason: 'expired', violations: [] };
    } catch {
      // The store is away: one more instalment is let run unreserved, which bounds the exposure; then the stream ends.
      const overrun = this.call.delivered.tokensSoFar() - this.reservedTokens;
      if (overrun >= this.plan.instalmentTokens) {
        this.verdict = { kind: 'stop', reason: 'unavailable', violations: [] };
      }
    }
    this.asking = null;
    return this.verdict;
  }
}
