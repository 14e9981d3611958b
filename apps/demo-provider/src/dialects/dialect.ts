import type { TokenCounter } from '@weir/tokens';
import type { Generation } from '../generation.js';

/** What every dialect must find in a request. */
export type TextRequest = {
  /** As sent: may carry directives behind a `#`. */
  model: string;
  /** All text of the prompt, joined: what is answered depends on it. */
  promptText: string;
  choices: number;
  maxTokens: number | undefined;
  stream: boolean;
  /** Whether the caller asked for usage in the stream; always true where the dialect reports it unasked. */
  includeUsage: boolean;
  /** Directives from the `user` or `metadata` field. */
  directives: string | undefined;
};

/** How usage is told: not at all, as null, once, or first a smaller number and then the right one. */
export type UsageTelling = 'omitted' | 'null' | 'once' | 'twice';

/** The server-sent events of one answer, as text with `\n` line ends. */
export type StreamEvents = {
  opening(): string;
  /** Events for the shown tokens `from` (included) to `to` (excluded), counted over all choices. */
  tokens(from: number, to: number): string;
  /** An event whose data is cut in the middle of its JSON. */
  malformed(): string;
  /** An error event, as this dialect writes it. */
  error(): string;
  /** Everything after the last token, the terminal event included. */
  closing(): string;
};

export type Dialect = {
  readonly idPrefix: string;
  /** @throws BadRequest */
  parse(body: Record<string, unknown>): TextRequest;
  /** Tokens of the prompt of a request that could be parsed. */
  countPrompt(
    counter: TokenCounter,
    model: string,
    body: Record<string, unknown>,
  ): Promise<{ tokens: number }>;
  /** The whole answer as JSON. */
  body(generation: Generation, usage: UsageTelling): string;
  stream(generation: Generation, usage: UsageTelling): StreamEvents;
};

/** The request is wrong; the text says how. */
export class BadRequest extends Error {
  constructor(
    message: string,
    readonly parameter: string | null = null,
  ) {
    super(message);
  }
}

export function readString(body: Record<string, unknown>, name: string): string {
  const value = body[name];
  if (typeof value !== 'string' || value === '')
    throw new BadRequest(`${name} must be a text`, name);
  return value;
}

export function readCount(
  body: Record<string, unknown>,
  name: string,
  max: number,
): number | undefined {
  const value = body[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > max) {
    throw new BadRequest(`${name} must be a whole number from 1 to ${max}`, name);
  }
  return value;
}

export function readFlag(body: Record<string, unknown>, name: string): boolean {
  const value = body[name];
  if (value === undefined || value === null) return false;
  if (typeof value !== 'boolean') throw new BadRequest(`${name} must be true or false`, name);
  return value;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export const maxTokensLimit = 10_000_000;
export const choicesLimit = 128;

const directivesPrefix = 'demo:';

/** `user: "demo:..."`, `metadata: { demo: "..." }` or Anthropic's `metadata: { user_id: "demo:..." }`. */
export function readDirectives(body: Record<string, unknown>): string | undefined {
  const { user, metadata } = body;
  if (typeof user === 'string' && user.startsWith(directivesPrefix))
    return user.slice(directivesPrefix.length);
  if (!isObject(metadata)) return undefined;
  if (typeof metadata['demo'] === 'string') return metadata['demo'];
  const userId = metadata['user_id'];
  if (typeof userId !== 'string' || !userId.startsWith(directivesPrefix)) return undefined;
  return userId.slice(directivesPrefix.length);
}

/** Collects the text of a prompt, from strings, messages and content parts alike. */
export class PromptReader {
  private readonly texts: string[] = [];

  /** A content field: a text, a list of parts, or nothing. */
  content(value: unknown): this {
    if (typeof value === 'string') this.texts.push(value);
    else if (Array.isArray(value)) for (const part of value as unknown[]) this.part(part);
    return this;
  }

  messages(value: unknown, name: string): this {
    if (!Array.isArray(value) || value.length === 0)
      throw new BadRequest(`${name} must be a list with a message`, name);
    for (const message of value as unknown[]) {
      if (!isObject(message)) throw new BadRequest(`${name} must be a list of objects`, name);
      this.content(message['content']);
      // Calls of tools and their results are prompt too.
      this.json(message['tool_calls']);
      this.content(message['output']);
    }
    return this;
  }

  /** Definitions (tools, schemas), as the JSON that they are. */
  json(value: unknown): this {
    if (value !== undefined && value !== null) this.texts.push(JSON.stringify(value));
    return this;
  }

  read(): string {
    return this.texts.join('\n');
  }

  private part(part: unknown): void {
    if (typeof part === 'string') this.texts.push(part);
    else if (!isObject(part)) return;
    else if (typeof part['text'] === 'string') this.texts.push(part['text']);
    else if (part['type'] === 'tool_result') this.content(part['content']);
    else if (part['type'] === 'tool_use') this.json(part['input']);
  }
}

/** One server-sent event without a name. */
export function dataEvent(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

export function namedEvent(data: { type: string }): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
}
