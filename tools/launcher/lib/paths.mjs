// Where things are in this repository.

import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const repoDir = dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url)))));

/** What `npm start` keeps from one start to the next. */
export const stateDir = join(repoDir, '.weir');

/** What can be computed again, shared by `npm start` and `npm test`. */
export const cacheDir = join(stateDir, 'cache');
