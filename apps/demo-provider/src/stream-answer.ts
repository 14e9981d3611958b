import type { ServerResponse } from 'node:http';
import type { Outcome } from './bill.js';
import type { StreamEvents } from './dialects/dialect.js';
import { EventWriter } from './event-writer.js';
import { shownTokens, type Generation } from './generation.js';
import { onClosed } from './on-closed.js';
import type { Settings } from './settings.js';

/** A timer may come a little early; a token that is due within this is due. */
const timerSlackMs = 0.5;

/**
 * Streams one answer at the pace and with the faults of its settings. `onEnd` is called exactly once, before the client
 * can see the end, with the number of output tokens generated until then (reasoning counts from the first shown token).
 */
export class StreamAnswer {
  private readonly writer: EventWriter;
  private readonly total: number;
  private readonly faultAt: number;
  private shown = 0;
  private begun = false;
  private ended = false;
  private hangs = false;
  private isMalformedSent = false;
  private firstTokenAtMs = 0;
  private eventsThisTick = 0;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly response: ServerResponse,
    private readonly generation: Generation,
    private readonly events: StreamEvents,
    private readonly settings: Settings,
    private readonly fault: Settings['fault'],
    private readonly onEnd: (outputTokens: number, outcome: Outcome) => void,
  ) {
    this.writer = new EventWriter(response, {
      crlf: settings.crlf,
      comments: settings.comments,
      splitBytes: settings.split_bytes,
    });
    this.total = shownTokens(generation);
    this.faultAt = this.placeOfFault();
    onClosed(response, this.onClose);
  }

  /** The head must have been written. */
  start(): void {
    if (this.put(this.events.opening(), this.waitForFirstToken)) this.waitForFirstToken();
  }

  /** Where every event is to leave on its own, it is written at once. */
  private put(events: string, resume: () => void): boolean {
    const { tokens_per_second, first_token_delay_ms, events_per_tick } = this.settings;
    const isUnhurried = tokens_per_second > 0 || first_token_delay_ms > 0 || events_per_tick > 0;
    return isUnhurried ? this.writer.write(events, resume) : this.writer.gather(events, resume);
  }

  private placeOfFault(): number {
    const happensMidStream =
      this.fault === 'hang_mid_stream' ||
      this.fault === 'eof_mid_stream' ||
      this.fault === 'reset_mid_stream' ||
      this.fault === 'error_event_mid_stream' ||
      this.fault === 'malformed_json';
    if (!happensMidStream) return Infinity;
    return Math.min(this.settings.fault_after_tokens ?? Math.floor(this.total / 2), this.total);
  }

  private readonly waitForFirstToken = (): void => {
    const { first_token_delay_ms, tokens_per_second } = this.settings;
    const reasoningMs =
      tokens_per_second > 0 ? (this.generation.reasoningTokens * 1_000) / tokens_per_second : 0;
    const delayMs = first_token_delay_ms + reasoningMs;
    if (delayMs > 0) this.timer = setTimeout(this.begin, delayMs);
    else this.begin();
  };

  private readonly begin = (): void => {
    this.begun = true;
    this.firstTokenAtMs = performance.now();
    this.step();
  };

  /** Writes what is due, until the client is slow, the next token is not due yet, or all is written. */
  private readonly step = (): void => {
    while (!this.ended) {
      if (this.shown === this.faultAt && !this.isMalformedSent) {
        if (this.fault !== 'malformed_json') {
          this.fail();
          return;
        }
        this.isMalformedSent = true;
        if (!this.put(this.events.malformed(), this.step)) return;
      }
      if (this.shown === this.total) break;
      if (this.waitsForPace()) return;
      const from = this.shown;
      const limit = this.isMalformedSent ? this.total : Math.min(this.total, this.faultAt);
      this.shown = Math.min(from + this.settings.tokens_per_chunk, limit);
      if (!this.put(this.events.tokens(from, this.shown), this.step)) return;
      if (this.waitsForTick()) return;
    }
    if (this.ended) return;
    const closing = this.events.closing();
    if (this.fault === 'eof_after_usage') {
      if (this.writer.write(withoutLastEvent(closing), this.breakOff)) this.breakOff();
    } else if (this.writer.write(closing, this.finish)) this.finish();
  };

  private waitsForPace(): boolean {
    const { tokens_per_second } = this.settings;
    if (tokens_per_second === 0) return false;
    const dueMs = this.firstTokenAtMs + (this.shown * 1_000) / tokens_per_second;
    const waitMs = dueMs - performance.now();
    if (waitMs <= timerSlackMs) return false;
    this.timer = setTimeout(this.step, waitMs);
    return true;
  }

  private waitsForTick(): boolean {
    const { events_per_tick } = this.settings;
    if (events_per_tick === 0) return false;
    this.eventsThisTick += 1;
    if (this.eventsThisTick < events_per_tick) return false;
    this.eventsThisTick = 0;
    setImmediate(this.step);
    return true;
  }

  private fail(): void {
    const events = this.fault === 'error_event_mid_stream' ? this.events.error() : '';
    if (this.writer.write(events, this.breakOff)) this.breakOff();
  }

  private readonly breakOff = (): void => {
    if (this.fault === 'hang_mid_stream') {
      // Entered in the bill when the client gives up.
      this.hangs = true;
      return;
    }
    this.end('fault');
    if (this.fault !== 'reset_mid_stream') {
      this.response.end();
      return;
    }
    // A reset drops what has not left yet: the tokens before it must be out, or it would look like one before headers.
    this.response.write(': reset\n\n', () => this.response.socket?.resetAndDestroy());
  };

  private readonly finish = (): void => {
    this.end('finished');
    this.response.end();
  };

  private readonly onClose = (): void => {
    this.end(this.hangs ? 'fault' : 'client_aborted');
  };

  private end(outcome: Outcome): void {
    if (this.ended) return;
    this.ended = true;
    clearTimeout(this.timer);
    const reasoning = this.begun ? this.generation.reasoningTokens : 0;
    this.onEnd(reasoning + this.shown, outcome);
  }
}

function withoutLastEvent(events: string): string {
  return events.slice(0, events.lastIndexOf('\n\n', events.length - 3) + 2);
}
