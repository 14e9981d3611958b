import type { EncodingName, RankTable } from './rank-table.js';

/** What the main thread tells a counting thread. A table comes before the first job that needs it. */
export type CountingRequest =
  | { readonly kind: 'table'; readonly table: RankTable }
  | {
      readonly kind: 'count';
      readonly id: number;
      readonly encoding: EncodingName;
      readonly texts: readonly string[];
    };

export type CountingReply =
  | { readonly id: number; readonly tokens: number }
  | { readonly id: number; readonly error: string };
