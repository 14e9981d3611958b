import { sseEvent, type SseEvent } from '../relay/sse-splitter.js';
import { isJsonObject, type JsonObject } from '../request/json-body.js';
import type {
  AskedCall,
  DeliveredPiece,
  EarlyEnd,
  EventVerdict,
  StreamReading,
  UsageReport,
} from './metered-route.js';
import { readOpenAiUsage, writeOpenAiUsage } from './openai-usage.js';

/** OpenAI allows up to 128 answers per request. */
export const choicesMax = 128;

export function choicesOf(value: JsonObject): JsonObject[] {
  const choices = value['choices'];
  return Array.isArray(choices) ? choices.filter(isJsonObject) : [];
}

function indexOf(choice: JsonObject, position: number): number {
  const index = choice['index'];
  return typeof index === 'number' && Number.isInteger(index) && index >= 0 && index < choicesMax
    ? index
    : position;
}

/** Where the streams of chat and of the older text completions differ. */
export type ChoiceFlavour = {
  readonly object: string;
  /** What one choice of a chunk delivers. */
  readonly textsOf: (choice: JsonObject) => readonly string[];
  /** A choice that ends for its length. */
  readonly lastChoice: (index: number) => JsonObject;
};

/** A stream of chunks with choices, ended by `[DONE]`. */
export class ChoiceStream implements StreamReading {
  private lastReport: UsageReport | null = null;
  private done = false;
  private errored = false;
  private readonly finishedChoices = new Set<number>();
  private readonly openChoices = new Set<number>();
  private head: JsonObject = {};

  constructor(
    private readonly asked: AskedCall,
    private readonly flavour: ChoiceFlavour,
  ) {}

  get complete(): boolean {
    return this.done || (this.finishedChoices.size > 0 && this.openChoices.size === 0);
  }

  get failed(): boolean {
    return this.errored;
  }

  report(): UsageReport | null {
    return this.lastReport;
  }

  read(event: SseEvent, deliver: (piece: DeliveredPiece) => void): EventVerdict {
    if (event.data === null) return 'forward';
    if (event.data.trim() === '[DONE]') {
      this.done = true;
      return 'last';
    }
    const chunk = parseChunk(event.data);
    if (chunk === null) return 'forward';
    if (isJsonObject(chunk['error']) || event.name === 'error') {
      this.errored = true;
      return 'forward';
    }
    const report = readOpenAiUsage(chunk['usage']);
    if (report !== null) this.lastReport = report;
    const choices = choicesOf(chunk);
    if (choices.length > 0) this.head = chunk;
    for (const [position, choice] of choices.entries()) {
      const index = indexOf(choice, position);
      if (typeof choice['finish_reason'] === 'string') {
        this.finishedChoices.add(index);
        this.openChoices.delete(index);
      } else if (!this.finishedChoices.has(index)) {
        this.openChoices.add(index);
      }
      for (const text of this.flavour.textsOf(choice)) deliver({ choice: index, text });
    }
    // Only the chunk that exists for the usage's sake is kept back: one with choices belongs to the client.
    const isExtra = report !== null && choices.length === 0;
    return isExtra && !this.asked.wantsStreamUsage ? 'hide' : 'forward';
  }

  endEarly({ message, code, usage, weir }: EarlyEnd): string {
    const { id, created, model } = this.head;
    const head = { id, object: this.flavour.object, created, model };
    const open = this.openChoices.size > 0 ? [...this.openChoices] : [0];
    const choices = open.map((index) => this.flavour.lastChoice(index));
    const last = sseEvent(JSON.stringify({ ...head, choices, weir: { ...weir, code, message } }));
    const usageChunk = this.asked.wantsStreamUsage
      ? sseEvent(JSON.stringify({ ...head, choices: [], usage: writeOpenAiUsage(usage) }))
      : '';
    return `${last}${usageChunk}${sseEvent('[DONE]')}`;
  }

  failure(body: JsonObject): string {
    return sseEvent(JSON.stringify(body));
  }
}

/** One event's data as an object, or null. */
export function parseChunk(data: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(data);
    return isJsonObject(value) ? value : null;
  } catch {
    // Not ours to judge: the client gets the bytes as they came.
    return null;
  }
}
