import { setImmediate as nextTurn } from 'node:timers/promises';
import { BytePairEncoder } from './byte-pair-encoder.js';
import { buildRankTable, type EncodingName, type RankTable } from './rank-table.js';

export interface LoadedEncoding {
  readonly table: RankTable;
  readonly encoder: BytePairEncoder;
}

const loading = new Map<EncodingName, Promise<LoadedEncoding>>();
const loaded = new Map<EncodingName, LoadedEncoding>();

/** Loads an encoding once per process; the ranks are never read twice. */
export function loadEncoding(name: EncodingName): Promise<LoadedEncoding> {
  const known = loading.get(name);
  if (known) return known;
  const promise = load(name);
  loading.set(name, promise);
  // A failed load (disk, memory) may be tried again by the next call.
  promise.catch(() => loading.delete(name));
  return promise;
}

/** The encoding when it is already there: for callers that cannot wait. */
export function loadedEncoding(name: EncodingName): LoadedEncoding | undefined {
  return loaded.get(name);
}

async function load(name: EncodingName): Promise<LoadedEncoding> {
  const { default: source } =
    name === 'o200k_base'
      ? await import('js-tiktoken/ranks/o200k_base')
      : await import('js-tiktoken/ranks/cl100k_base');
  const table = await buildRankTable(name, source, () => nextTurn());
  const encoding = { table, encoder: new BytePairEncoder(table) };
  loaded.set(name, encoding);
  return encoding;
}
