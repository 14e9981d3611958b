import { parentPort } from 'node:worker_threads';
import { BytePairEncoder } from './byte-pair-encoder.js';
import type { CountingReply, CountingRequest } from './counting-protocol.js';
import type { EncodingName } from './rank-table.js';

/** Entry of a counting thread: the same encoder, over the same shared tables. */
const port = parentPort;
if (!port) throw new Error('counting-thread runs as a worker thread only');

const encoders = new Map<EncodingName, BytePairEncoder>();

port.on('message', (request: CountingRequest) => {
  if (request.kind === 'table') {
    encoders.set(request.table.name, new BytePairEncoder(request.table));
    return;
  }
  port.postMessage(answer(request));
});

function answer(request: CountingRequest & { kind: 'count' }): CountingReply {
  const { id, encoding, texts } = request;
  try {
    const encoder = encoders.get(encoding);
    if (!encoder) throw new Error(`Encoding ${encoding} was not sent`);
    let tokens = 0;
    for (const text of texts) tokens += encoder.count(text);
    return { id, tokens };
  } catch (error) {
    return { id, error: error instanceof Error ? error.message : String(error) };
  }
}
