import type { Dialect, ModelDocument, TokenUsage } from '@weir/domain';
import type { PromptCount, TokenCounter } from '@weir/tokens';
import type { SseEvent } from '../relay/sse-splitter.js';
import type { JsonObject } from '../request/json-body.js';

/**
 * One metered route, as data. The pipeline (authenticate, parse, count, admit, dispatch, relay, settle) is the same
 * for all of them; a route says only how its bodies look. Adding a route is adding one of these to `routes/index.ts`.
 */
export type MeteredRoute = {
  /** What tenants call, such as `/v1/chat/completions`. Also the route's name in usage events. */
  readonly path: string;
  readonly dialect: Dialect;
  readonly modelKind: ModelDocument['kind'];
  /** Behind the upstream's base URL. */
  readonly upstreamPath: string;
  /** Reads and checks a body. @throws WeirError `invalid_request` naming the field and the remedy. */
  read(body: JsonObject): AskedCall;
  /** Prompt tokens, in bounded time. `model` is the upstream's name of it: the tokenizer depends on that. */
  countPrompt(counter: TokenCounter, model: string, body: JsonObject): Promise<PromptCount>;
  /** The body to send upstream. */
  upstreamBody(body: JsonObject, change: UpstreamChange): JsonObject;
  /** Reads a whole answer (not streamed). */
  readAnswer(answer: JsonObject): AnswerReading;
  /** Starts to read one streamed answer. */
  openStream(asked: AskedCall): StreamReading;
};

/** What a call asks for, in the words that admission needs. */
export type AskedCall = {
  readonly model: string;
  readonly streamed: boolean;
  /** The caller's cap on output tokens per choice; null where none is set. */
  readonly outputCap: number | null;
  /** The field that the cap is set with, for errors. */
  readonly capParam: string;
  /** `n`: how many answers, each of which may use the whole cap. */
  readonly choices: number;
  /** Whether the caller asked for usage in the stream. */
  readonly wantsStreamUsage: boolean;
  /** Kinds of tokens beyond text that the call may use, hence must have a price. */
  readonly media: {
    readonly audioInput: boolean;
    readonly imageInput: boolean;
    readonly audioOutput: boolean;
  };
  /** Tokens that the upstream may add to the prompt by itself (a stored conversation): unknown here, reserved as a floor. */
  readonly addsStoredContext: boolean;
};

/** A call of text alone. */
export const noMedia: AskedCall['media'] = Object.freeze({
  audioInput: false,
  imageInput: false,
  audioOutput: false,
});

export type UpstreamChange = {
  readonly upstreamModel: string;
  /** A cap on output tokens per choice that replaces or adds to the caller's; null leaves it as it is. */
  readonly outputCap: number | null;
};

/** Usage as an upstream reports it. A number that is missing or null is null: it is then counted here. */
export type UsageReport = {
  readonly usage: TokenUsage;
  readonly hasInput: boolean;
  readonly hasOutput: boolean;
  /** The numbers contradicted each other and were clamped. */
  readonly clamped: boolean;
};

/** Text that a stream delivered, by choice; counted only where the upstream reports no usage. */
export type DeliveredPiece = { readonly choice: number; readonly text: string };

export type AnswerReading = {
  readonly report: UsageReport | null;
  /** All texts of the answer, gathered when they are asked for: nearly every answer reports its usage. */
  readonly delivered: () => readonly string[];
};

/** What the relay does with one event: pass it on, keep it from the client, or settle and then pass it on as the last. */
export type EventVerdict = 'forward' | 'hide' | 'last';

/** State of one streamed answer, fed event by event. */
export type StreamReading = {
  read(event: SseEvent, deliver: (piece: DeliveredPiece) => void): EventVerdict;
  /** The last usage that was reported, or null. */
  report(): UsageReport | null;
  /** Whether the answer came to its own end (as opposed to a connection that just closed). */
  readonly complete: boolean;
  /** Whether the upstream reported an error in the middle. */
  readonly failed: boolean;
  /** Events that end the stream properly when the quota is used up: reason `length`, notice, usage, end marker. */
  endEarly(notice: EarlyEnd): string;
  /** An event that tells the client of an error; `body` is what it would be answered with, had no head gone out. */
  failure(body: JsonObject): string;
};

export type EarlyEnd = {
  readonly message: string;
  readonly code: string;
  readonly usage: TokenUsage;
  readonly weir: JsonObject;
};
