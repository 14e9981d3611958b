// `npm run chaos -- <name> [--seconds N] [more]`: runs tools/chaos/<name>.mjs, which breaks parts of a
// running stack and counts what was lost.

import { runNamedScript } from './lib/named-script.mjs';

await runNamedScript({ command: 'chaos', secondsDefault: 60 });
