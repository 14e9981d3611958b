import type { TFunction } from 'i18next';
import { en } from './en.js';

/** A word of a known set that the API gives as free text: translated when it is known, else as it came. */
export function term(
  t: TFunction,
  set: 'callStatus' | 'outcome' | 'level' | 'metric',
  word: string,
): string {
  if (!Object.hasOwn(en[set], word)) return word;
  return (t as (key: string) => string)(`${set}.${word}`);
}
