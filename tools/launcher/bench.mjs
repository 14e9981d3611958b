// `npm run bench -- <name> [--seconds N] [more]`: runs tools/bench/<name>.mjs.

import { runNamedScript } from './lib/named-script.mjs';

await runNamedScript({ command: 'bench', secondsDefault: 30 });
