import type { ServerResponse } from 'node:http';
import type { Outcome } from './bill.js';
import { onClosed } from './on-closed.js';
import type { Settings } from './settings.js';

/**
 * Sends one whole answer after the time that its generation takes. A caller that leaves meanwhile is billed in full:
 * the generation does not stop for it. `onEnd` is called exactly once, before the client can see the end.
 */
export function sendWholeAnswer(
  response: ServerResponse,
  body: string,
  delayMs: number,
  fault: Settings['fault'],
  onEnd: (outcome: Outcome) => void,
): void {
  let ended = false;
  let timer: NodeJS.Timeout | undefined;
  let hangs = false;
  const end = (outcome: Outcome): void => {
    if (ended) return;
    ended = true;
    clearTimeout(timer);
    onEnd(outcome);
  };
  const send = (): void => {
    const bytes = Buffer.from(body);
    const half = bytes.subarray(0, Math.floor(bytes.length / 2));
    if (fault === 'hang_mid_stream') {
      hangs = true;
      response.write(half);
    } else if (fault === 'eof_mid_stream' || fault === 'reset_mid_stream') {
      end('fault');
      response.write(half, () => {
        if (fault === 'reset_mid_stream') response.socket?.resetAndDestroy();
        else response.destroy();
      });
    } else if (fault === 'malformed_json') {
      end('fault');
      response.end(half);
    } else {
      response.setHeader('content-length', bytes.length);
      end('finished');
      response.end(bytes);
    }
  };
  onClosed(response, () => end(hangs ? 'fault' : 'client_aborted'));
  if (delayMs > 0) timer = setTimeout(send, delayMs);
  else send();
}
