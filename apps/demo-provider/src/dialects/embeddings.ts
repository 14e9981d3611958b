import type { Model } from '../price-list.js';
import { seedOf } from '../prose.js';
import { BadRequest, readCount, readDirectives, readString } from './dialect.js';

const defaultDimensions = 256;
const dimensionsMax = 4_096;
const inputsMax = 2_048;

export type EmbeddingRequest = {
  model: string;
  inputs: readonly (string | readonly number[])[];
  dimensions: number;
  isBase64: boolean;
  directives: string | undefined;
};

/** @throws BadRequest */
export function parseEmbeddingRequest(body: Record<string, unknown>): EmbeddingRequest {
  const inputs = readInputs(body['input']);
  const format = body['encoding_format'] ?? 'float';
  if (format !== 'float' && format !== 'base64') {
    throw new BadRequest('encoding_format must be float or base64', 'encoding_format');
  }
  return {
    model: readString(body, 'model'),
    inputs,
    dimensions: readCount(body, 'dimensions', dimensionsMax) ?? defaultDimensions,
    isBase64: format === 'base64',
    directives: readDirectives(body),
  };
}

function readInputs(value: unknown): readonly (string | readonly number[])[] {
  if (typeof value === 'string' && value !== '') return [value];
  if (Array.isArray(value) && value.length > 0 && value.length <= inputsMax) {
    if (value.every((item) => typeof item === 'number')) return [value as number[]];
    const isInput = (item: unknown): item is string | number[] =>
      (typeof item === 'string' && item !== '') ||
      (Array.isArray(item) && item.length > 0 && item.every((token) => typeof token === 'number'));
    if (value.every(isInput)) return value;
  }
  throw new BadRequest(
    `input must be a text, or a list of at most ${inputsMax} texts or token lists`,
    'input',
  );
}

/** @param usage what is reported; `undefined` leaves the field out. */
export function embeddingBody(
  request: EmbeddingRequest,
  model: Model,
  usage: { prompt_tokens: number; total_tokens: number } | null | undefined,
): string {
  return JSON.stringify({
    object: 'list',
    data: request.inputs.map((input, index) => {
      const vector = vectorOf(
        typeof input === 'string' ? input : input.join(' '),
        request.dimensions,
      );
      const embedding = request.isBase64
        ? Buffer.from(vector.buffer).toString('base64')
        : [...vector];
      return { object: 'embedding', index, embedding };
    }),
    model: model.name,
    ...(usage === undefined ? {} : { usage }),
  });
}

/** A unit vector that depends on the text alone (xorshift32 from its hash). */
function vectorOf(text: string, dimensions: number): Float32Array {
  const vector = new Float32Array(dimensions);
  let state = seedOf(text) || 1;
  let squares = 0;
  for (let index = 0; index < dimensions; index += 1) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    const value = state / 0x80000000;
    vector[index] = value;
    squares += value * value;
  }
  const norm = Math.sqrt(squares) || 1;
  for (let index = 0; index < dimensions; index += 1) vector[index] = (vector[index] ?? 0) / norm;
  return vector;
}
