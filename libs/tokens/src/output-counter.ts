import type { BytePairEncoder } from './byte-pair-encoder.js';
import { estimateTokens } from './sampled-estimate.js';

/** Counts the text that a stream delivers. Synchronous; bounded work per call. */
export interface OutputCounter {
  /** Adds delivered text, in any cut: half words, half surrogate pairs. */
  push(textDelta: string): void;
  /** Tokens so far, what is still in the buffer included as an upper guess. */
  tokens(): number;
  /** Counts the rest and gives the total. May be called again. */
  finish(): number;
}

/** Below this the error of a cut word shows (up to +103 % when every delta counts alone). */
const SEGMENT_CHARS_MIN = 256;
/** Text without any word edge is cut here: one token in four thousand characters or so. */
const SEGMENT_CHARS_MAX = 4_096;
/** A longer delta is sampled, so that none holds the event loop; whole bodies go to `countText`. */
const EXACT_DELTA_CHARS_MAX = 8_192;
/** Before the count: prose and code have 3 to 5 characters per token, dense scripts up to 2 tokens. */
const ASCII_CHARS_PER_TOKEN = 2;
const DENSE_TOKENS_PER_CHAR = 2;

/**
 * Places where both encodings always end one piece and begin the next, so that counting the two
 * sides apart changes nothing: between a letter or digit and a mark that cannot belong to it
 * (an apostrophe may: "don't"), and before a blank that follows a non-blank.
 */
const WORD_EDGE = /(?<=[\p{L}\p{N}])(?=[^\p{L}\p{N}\p{M}'])|(?<=\S)(?= )/gu;

/**
 * Cuts depend on the text alone, never on how it came in deltas.
 * @param encoder undefined while the ranks are not loaded: then counts are rough and err high
 */
export function createOutputCounter(
  encoder: () => BytePairEncoder | undefined,
  factor: number,
  random: () => number,
): OutputCounter {
  let buffer = '';
  let counted = 0;
  /** Where the search for an edge goes on: not from the start at every character. */
  let searchFrom = SEGMENT_CHARS_MIN;

  function countSegment(text: string): number {
    return encoder()?.count(text) ?? roughTokens(text);
  }

  function takeSegment(): boolean {
    // An edge is certain only with the whole next character in sight.
    const limit = Math.min(buffer.length - 2, SEGMENT_CHARS_MAX);
    if (limit < searchFrom) return false;
    WORD_EDGE.lastIndex = searchFrom;
    const edge = WORD_EDGE.exec(buffer)?.index;
    let cut: number;
    if (edge !== undefined && edge <= limit) cut = edge;
    else if (limit < SEGMENT_CHARS_MAX) {
      searchFrom = limit;
      return false;
    } else cut = SEGMENT_CHARS_MAX - (isHighSurrogate(buffer, SEGMENT_CHARS_MAX - 1) ? 1 : 0);
    counted += countSegment(buffer.slice(0, cut));
    buffer = buffer.slice(cut);
    searchFrom = SEGMENT_CHARS_MIN;
    return true;
  }

  return {
    push(textDelta) {
      if (textDelta.length > EXACT_DELTA_CHARS_MAX) {
        const ranks = encoder();
        counted += countSegment(buffer);
        counted += ranks ? estimateTokens(ranks, [textDelta], random) : roughTokens(textDelta);
        buffer = '';
        searchFrom = SEGMENT_CHARS_MIN;
        return;
      }
      buffer += textDelta;
      while (takeSegment());
    },
    tokens: () => Math.ceil((counted + roughTokens(buffer)) * factor),
    finish() {
      if (buffer !== '') {
        counted += countSegment(buffer);
        buffer = '';
        searchFrom = SEGMENT_CHARS_MIN;
      }
      return Math.ceil(counted * factor);
    },
  };
}

function isHighSurrogate(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xd800;
}

function roughTokens(text: string): number {
  let dense = 0;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 127) dense++;
  return Math.ceil((text.length - dense) / ASCII_CHARS_PER_TOKEN + dense * DENSE_TOKENS_PER_CHAR);
}
