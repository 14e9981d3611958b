import type { Readable } from 'node:stream';
import { WeirError, type UpstreamDocument } from '@weir/domain';
import type { Violation } from '@weir/quota';
import { errorBody } from '../answers/error-body.js';
import type { JsonObject } from '../request/json-body.js';
import type { StreamReading } from '../routes/metered-route.js';
import type { LiveCall } from '../settlement/live-call.js';
import type { Settler } from '../settlement/settler.js';
import { failureInBody } from '../upstream/upstream-client.js';
import { upstreamFailureError } from '../upstream/upstream-errors.js';
import { countedUsage } from '../admission/reservation.js';
import type { ClientStream } from './client-stream.js';
import type { Drains } from './drains.js';
import { SseSplitter } from './sse-splitter.js';
import type { Taximeter } from './taximeter.js';

/** After the last event of a stream its connection is read to the end for this long, so that it can be used again. */
const tailMs = 1_000;

export type StreamRelay = {
  readonly upstream: UpstreamDocument;
  readonly body: Readable;
  readonly client: ClientStream;
  readonly reading: StreamReading;
  readonly call: LiveCall;
  readonly settler: Settler;
  readonly taximeter: Taximeter | null;
  readonly drains: Drains;
  readonly keepAliveMs: number;
  /** The page that explains the errors, if there is one. */
  readonly docsUrl: string | undefined;
  /** Words an early end for the caller. */
  readonly describeStop: (violations: readonly Violation[]) => {
    message: string;
    code: string;
    weir: JsonObject;
  };
};

/**
 * Passes one stream on, event by event, and settles the call before its last event goes out. Never rejects: whatever
 * happens to either side ends in one settlement.
 *
 * Events are forwarded with the bytes they came in; a client cannot use half of one, so holding the bytes of an
 * unfinished event costs nothing, and lets single events be kept back and the stream be ended between two.
 */
export async function relayStream(relay: StreamRelay): Promise<void> {
  const { body, client, call, settler, reading, drains } = relay;
  const keepAlive = setInterval(
    () => {
      if (client.idleMs >= relay.keepAliveMs) client.keepAlive();
    },
    Math.max(20, relay.keepAliveMs / 4),
  );
  let releaseDrain: () => void = () => undefined;
  client.onLeave(() => {
    const reads = relay.upstream.onClientGone === 'drain' || client.isRecorded;
    const granted = reads ? drains.begin(() => body.destroy()) : null;
    if (granted === null) body.destroy();
    else releaseDrain = granted;
  });
  try {
    await forward(relay);
  } catch (error) {
    const status = client.hasLeft ? 'cancelled' : 'partial';
    await settler.end(call, { status, report: reading.report() });
    const failure = failureInBody(relay.upstream, error);
    const told = errorBody(upstreamFailureError(relay.upstream, failure), relay.upstream.dialect, {
      requestId: call.draft.requestId,
      docsUrl: relay.docsUrl,
    });
    client.end(reading.failure(told));
  } finally {
    releaseDrain();
    clearInterval(keepAlive);
    body.destroy();
  }
}

async function forward(relay: StreamRelay): Promise<void> {
  const { body, client, call, settler, reading, taximeter } = relay;
  const splitter = new SseSplitter();
  let tail: NodeJS.Timeout | undefined;
  let isOver = false;
  const deliver = (piece: { choice: number; text: string }): void => {
    call.markFirstToken();
    taximeter?.noteDelivered(piece.text.length);
    call.delivered.add(piece);
  };
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      if (isOver) continue;
      let kept: Buffer[] = [];
      let last: Buffer | null = null;
      for (const event of splitter.push(chunk)) {
        const verdict = reading.read(event, deliver);
        if (verdict === 'last') {
          last = event.bytes;
          break;
        }
        if (verdict === 'forward') kept.push(event.bytes);
        // Within a chunk too: one may hold far more than what is reserved.
        if (taximeter === null || !taximeter.isDue) continue;
        await writeAll(client, kept);
        kept = [];
        const meter = await taximeter.check();
        if (meter.kind === 'stop') {
          await endEarly(relay, meter.violations);
          return;
        }
      }
      await writeAll(client, kept);
      if (last === null) continue;
      await settler.end(call, { status: statusOf(relay), report: reading.report() });
      client.end(last);
      isOver = true;
      tail = setTimeout(() => body.destroy(), tailMs);
    }
  } catch (error) {
    // What comes after the last event concerns nobody.
    if (!isOver) throw error;
  } finally {
    clearTimeout(tail);
  }
  if (isOver) return;
  if (!reading.complete && !client.hasLeft) {
    throw new WeirError('upstream_error', 'the stream closed without its end');
  }
  await settler.end(call, { status: statusOf(relay), report: reading.report() });
  const rest = splitter.rest();
  client.end(rest.length > 0 ? rest : undefined);
}

async function writeAll(client: ClientStream, pieces: readonly Buffer[]): Promise<void> {
  const [first] = pieces;
  if (first === undefined) return;
  await client.write(pieces.length === 1 ? first : Buffer.concat(pieces));
}

function statusOf({ client, reading }: StreamRelay): 'ok' | 'partial' | 'cancelled' {
  if (reading.failed) return 'partial';
  return client.hasLeft ? 'cancelled' : 'ok';
}

/** The quota is used up in the middle: stop the upstream, settle what was delivered, and end the stream properly. */
async function endEarly(relay: StreamRelay, violations: readonly Violation[]): Promise<void> {
  const { body, client, call, settler, reading } = relay;
  body.destroy();
  const charge = await settler.end(call, { status: 'partial', report: reading.report() });
  const usage =
    charge?.kind === 'usage'
      ? charge.usage
      : countedUsage(call.promptTokens, call.delivered.total());
  client.end(reading.endEarly({ usage, ...relay.describeStop(violations) }));
}
