import type { CountableInput } from '@weir/tokens';
import { invalidField } from '../request/fields.js';
import type { JsonObject } from '../request/json-body.js';

const inputsMax = 2_048;

/**
 * The input of completions and embeddings: a text, a list of texts, token ids, or a list of token ids.
 *
 * @throws WeirError `invalid_request`
 */
export function requiredPrompt(body: JsonObject, param: string): CountableInput {
  const value = body[param];
  if (typeof value === 'string' && value !== '') return value;
  if (Array.isArray(value) && value.length > 0) {
    const items: readonly unknown[] = value;
    if (items.every(isTokenId)) return items as readonly number[];
    if (items.length > inputsMax) {
      throw invalidField(
        param,
        `"${param}" has ${items.length} entries. Send at most ${inputsMax}.`,
      );
    }
    if (items.every((item) => typeof item === 'string')) return items;
    const areTokens = (item: unknown): boolean =>
      Array.isArray(item) && item.length > 0 && item.every(isTokenId);
    if (items.every(areTokens)) return items as readonly (readonly number[])[];
  }
  throw invalidField(
    param,
    `"${param}" must be a text that is not empty, a list of texts, or a list of token ids.`,
  );
}

function isTokenId(value: unknown): boolean {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** How many prompts an input is: each gets answers of its own. */
export function promptCount(input: CountableInput): number {
  return typeof input === 'string' || typeof input[0] === 'number' ? 1 : input.length;
}
