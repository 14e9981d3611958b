// The package brings no types. What the ledger uses of it:
declare module 'pg-copy-streams' {
  import type { Writable } from 'node:stream';
  import type { Submittable } from 'pg';

  export function from(text: string): Writable & Submittable & { readonly rowCount: number };
}
