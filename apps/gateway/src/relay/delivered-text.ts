import type { OutputCounter } from '@weir/tokens';
import type { DeliveredPiece } from '../routes/metered-route.js';

/** Counted at once beyond this, so that memory stays bounded however long an answer runs. */
const uncountedCharactersMax = 64 * 1024;

/**
 * What an answer has delivered so far. Text is counted only when someone asks: most answers end with the upstream's own
 * usage and are never counted here. One counter per choice: deltas of several choices interleave, and counting the mix
 * would tear words apart.
 */
export class DeliveredText {
  /** None until something is counted. */
  private counters: Map<number, OutputCounter> | null = null;
  private uncounted: DeliveredPiece[] = [];
  private uncountedCharacters = 0;
  private countedElsewhere = 0;

  constructor(private readonly newCounter: () => OutputCounter) {}

  add(piece: DeliveredPiece): void {
    this.uncounted.push(piece);
    this.uncountedCharacters += piece.text.length;
    if (this.uncountedCharacters > uncountedCharactersMax) this.count();
  }

  /** Adds text that was counted as a whole: one counter of a stream samples what comes in large pieces. */
  addCounted(tokens: number): void {
    this.countedElsewhere += tokens;
  }

  /** Tokens so far, with an upper guess for the last words. */
  tokensSoFar(): number {
    this.count();
    let tokens = this.countedElsewhere;
    for (const counter of this.counters?.values() ?? []) tokens += counter.tokens();
    return tokens;
  }

  /** Tokens in all, once nothing more comes. */
  total(): number {
    this.count();
    let tokens = this.countedElsewhere;
    for (const counter of this.counters?.values() ?? []) tokens += counter.finish();
    return tokens;
  }

  private count(): void {
    if (this.uncounted.length === 0) return;
    this.counters ??= new Map();
    for (const { choice, text } of this.uncounted) {
      let counter = this.counters.get(choice);
      if (counter === undefined) {
        counter = this.newCounter();
        this.counters.set(choice, counter);
      }
      counter.push(text);
    }
    this.uncounted = [];
    this.uncountedCharacters = 0;
  }
}
