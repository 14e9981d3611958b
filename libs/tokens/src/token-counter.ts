import { setImmediate as nextTurn } from 'node:timers/promises';
import { CountingPool } from './counting-pool.js';
import { loadedEncoding, loadEncoding } from './encodings.js';
import { jsonChars } from './json-elements.js';
import { modelFamily, type ModelFamily } from './model-families.js';
import { createOutputCounter, type OutputCounter } from './output-counter.js';
import {
  chatParts,
  isTruncated,
  messagesParts,
  responsesParts,
  type ChatBody,
  type MessagesBody,
  type PromptParts,
  type ResponsesBody,
} from './prompt-parts.js';
import type { EncodingName } from './rank-table.js';
import { estimateTokens } from './sampled-estimate.js';
import { startCountingThread } from './start-counting-thread.js';

export interface PromptCount {
  /** Whole tokens, never negative. */
  readonly tokens: number;
  /** False only when this is the model's own count: own encoding, documented overhead, no media. */
  readonly estimated: boolean;
  /** Where the text was counted: on this thread, on a worker, or from a sample that errs high. */
  readonly method: 'inline' | 'worker' | 'estimate';
}

/** Text, several texts, or what embeddings also take: token ids, whose number counts. */
export type CountableInput = string | readonly number[] | readonly (string | readonly number[])[];

export interface TokenCounter {
  /**
   * OpenAI chat completions. Never throws on content; unknown parts count as their JSON.
   * @param bodyBytes size of the body as it came: bounds a body with too many parts to read.
   *   Without it such a body is measured here, which takes as long as parsing it did.
   */
  countChat(model: string, body: ChatBody, bodyBytes?: number): Promise<PromptCount>;
  /** Anthropic messages and `count_tokens`. */
  countMessages(model: string, body: MessagesBody, bodyBytes?: number): Promise<PromptCount>;
  /** OpenAI Responses; what `previous_response_id` adds is not included. */
  countResponses(model: string, body: ResponsesBody, bodyBytes?: number): Promise<PromptCount>;
  /** Completions and embeddings: no chat overhead. */
  countText(model: string, input: CountableInput): Promise<PromptCount>;
  /** Counter of one streamed answer. Rough until the encoding is loaded: see {@link warmUp}. */
  outputCounter(model: string): OutputCounter;
  /** Loads the encodings and starts the worker threads. */
  warmUp(): Promise<void>;
  stats(): TokenCounterStats;
  /** Lets running counts end, then ends the threads. Later calls are inline or estimates. */
  close(): Promise<void>;
}

export interface TokenCounterStats {
  /** Counts by method since the start. */
  readonly counts: Readonly<Record<PromptCount['method'], number>>;
  readonly running: number;
  readonly queued: number;
  readonly threads: number;
  readonly threadFailures: number;
}

export interface TokenCounterOptions {
  /** Text up to this is counted on the calling thread: at most about 10 ms, cold. */
  readonly inline_bytes_max?: number;
  /** Text up to this goes to a worker: at most about 400 ms there. Beyond it is sampled. */
  readonly worker_bytes_max?: number;
  /** 0: no worker; what is not counted inline is sampled. */
  readonly threads?: number;
  readonly queue_jobs_max?: number;
  /** A caller waits no longer for a worker; then the sample answers. */
  readonly answer_ms_max?: number;
  /** A thread that holds one text for longer is replaced. */
  readonly stuck_ms_max?: number;
  /** Told of every failure of a thread (counting goes on without it). Carries no prompt text. */
  readonly onFailure?: (error: Error) => void;
  /** In [0, 1): places of the samples. */
  readonly random?: () => number;
  /** Monotonic milliseconds. */
  readonly now?: () => number;
  readonly startThread?: typeof startCountingThread;
}

const KIB = 1_024;
/** A text costs its own set-up beside its bytes: bounds bodies of many tiny texts. */
const TEXT_OVERHEAD_BYTES = 16;
/** The densest element is an empty message: `{},` in the body, 5 tokens of structure. */
const TOKENS_PER_BODY_BYTE_MAX = 2;
const QUEUE_CHARS_MAX = 8 * KIB * KIB;

/** Each kind of text takes its own way through the encoder: words, one script, marks, long pieces. */
const COMPILING_TEXTS = [
  'The weir holds back the river; it measures 1,234.5 litres.\n'.repeat(4),
  String.fromCharCode(...Array.from({ length: 200 }, (_, i) => 0x4e00 + ((i * 7_919) % 20_000))),
  '!#%&*+-=<>?@^~|'.repeat(10),
  'qxzjkvbw'.repeat(40),
];
const COMPILING_ROUNDS = 40;

/**
 * Loads the ranks of the given encodings (both by default), in slices that block nothing, and
 * runs the encoder until its code is compiled.
 */
export async function warmUp(
  encodings: readonly EncodingName[] = ['o200k_base', 'cl100k_base'],
): Promise<void> {
  for (const name of encodings) {
    const { encoder } = await loadEncoding(name);
    // The first requests must not pay for the compiler: hot code is compiled by use.
    for (let round = 0; round < COMPILING_ROUNDS; round++) {
      for (const text of COMPILING_TEXTS) encoder.count(text + round);
      await nextTurn();
    }
  }
}

export function createTokenCounter(options: TokenCounterOptions = {}): TokenCounter {
  const {
    inline_bytes_max = 16 * KIB,
    worker_bytes_max = KIB * KIB,
    threads = 1,
    queue_jobs_max = 32,
    answer_ms_max = 1_000,
    stuck_ms_max = 10_000,
    onFailure = () => undefined,
    random = Math.random,
    now = () => performance.now(),
    startThread = startCountingThread,
  } = options;
  const pool = new CountingPool({
    threads,
    queue_jobs_max,
    queue_chars_max: QUEUE_CHARS_MAX,
    answer_ms_max,
    stuck_ms_max,
    startThread,
    onFailure,
    now,
  });
  const counts = { inline: 0, worker: 0, estimate: 0 };

  async function countTexts(
    family: ModelFamily,
    texts: readonly string[],
  ): Promise<Pick<PromptCount, 'tokens' | 'method'>> {
    const { table, encoder } = await loadEncoding(family.encoding);
    const bytes = textBytes(texts, worker_bytes_max);
    if (bytes <= inline_bytes_max) {
      return {
        tokens: texts.reduce((sum, text) => sum + encoder.count(text), 0),
        method: 'inline',
      };
    }
    const tokens = bytes <= worker_bytes_max ? await pool.count(table, texts) : undefined;
    return tokens === undefined
      ? { tokens: estimateTokens(encoder, texts, random), method: 'estimate' }
      : { tokens, method: 'worker' };
  }

  async function countParts(
    family: ModelFamily,
    texts: readonly string[],
    fixedTokens: number,
    approximate: boolean,
  ): Promise<PromptCount> {
    const { tokens, method } = await countTexts(family, texts);
    counts[method]++;
    return {
      tokens: Math.ceil(tokens * family.factor) + fixedTokens,
      estimated: approximate || method === 'estimate',
      method,
    };
  }

  async function countBody<Body>(
    model: string,
    body: Body,
    bodyBytes: number | undefined,
    readParts: (family: ModelFamily, body: Body) => PromptParts,
  ): Promise<PromptCount> {
    const family = modelFamily(model);
    const parts = readParts(family, body);
    if (!isTruncated(parts)) {
      return countParts(family, parts.texts, parts.fixedTokens, parts.approximate);
    }
    counts.estimate++;
    // Without the size in bytes: a UTF-16 unit takes at most three.
    const bytes = bodyBytes ?? jsonChars(body) * 3;
    return { tokens: bytes * TOKENS_PER_BODY_BYTE_MAX, estimated: true, method: 'estimate' };
  }

  return {
    countChat: (model, body, bodyBytes) => countBody(model, body, bodyBytes, chatParts),
    countMessages: (model, body, bodyBytes) => countBody(model, body, bodyBytes, messagesParts),
    countResponses: (model, body, bodyBytes) => countBody(model, body, bodyBytes, responsesParts),
    countText: async (model, input) => {
      const family = modelFamily(model);
      const { texts, ids } = splitInput(input);
      return countParts(family, texts, ids, family.factor !== 1);
    },
    outputCounter: (model) => {
      const { encoding, factor } = modelFamily(model);
      // Failure to load shows at the next awaited count; here the rough count stands in.
      if (!loadedEncoding(encoding)) loadEncoding(encoding).catch(onFailure);
      return createOutputCounter(() => loadedEncoding(encoding)?.encoder, factor, random);
    },
    warmUp: async () => {
      await warmUp();
      pool.warmUp();
    },
    stats: () => ({ counts: { ...counts }, ...pool.stats() }),
    close: () => pool.close(),
  };
}

/** Bytes of the texts with their overhead; stops adding once it is clear that they are too many. */
function textBytes(texts: readonly string[], enough: number): number {
  let bytes = 0;
  for (const text of texts) {
    // UTF-8 is never shorter than UTF-16 units: long texts need no second look.
    const least = bytes + text.length;
    bytes = least > enough ? least : bytes + Buffer.byteLength(text) + TEXT_OVERHEAD_BYTES;
    if (bytes > enough) return bytes;
  }
  return bytes;
}

function splitInput(input: CountableInput): { texts: string[]; ids: number } {
  if (typeof input === 'string') return { texts: [input], ids: 0 };
  const texts: string[] = [];
  let ids = 0;
  for (const item of input) {
    if (typeof item === 'string') texts.push(item);
    else if (Array.isArray(item)) ids += item.length;
    else ids++;
  }
  return { texts, ids };
}
