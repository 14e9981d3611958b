import { createHash } from 'node:crypto';
import { shardTag, WeirError, type CallerPolicy } from '@weir/domain';
import type { Logger } from '@weir/platform';
import type { QuotaRedis } from '@weir/quota';
import { isJsonObject } from '../request/json-body.js';

/** An answer as it was sent, to be sent again. */
export type RecordedAnswer = {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
};

/** A call that runs under an idempotency key. Exactly one of the two ends it. */
export type Claim = {
  /** Keeps the answer for repetitions; null when it was too large to be kept. */
  keep(answer: RecordedAnswer | null): Promise<void>;
  /** Nothing was charged: the next call with this key runs afresh. */
  forget(): Promise<void>;
};

const keyCharactersMax = 255;
/** Answers are kept for this long. */
const keptMs = 10 * 60_000;
/** A claim lasts this long without a sign of life: a gateway that died must not block its callers' retries for long. */
const claimMs = 60_000;

/** Longest answer that is kept. */
export const recordedBytesMax = 256 * 1024;

/**
 * `Idempotency-Key`, as far as a caller opts in by sending one: the same key and body get the stored answer without
 * being metered again. The only place where answers are ever stored; bounded in size, and gone after ten minutes.
 */
export class IdempotencyStore {
  constructor(
    private readonly redis: QuotaRedis,
    private readonly logger: Logger,
  ) {}

  /**
   * Claims a key for a call.
   *
   * @returns the answer to repeat, or the claim under which the call is to be made.
   * @throws WeirError `invalid_request` (the key itself), `conflict` (still running, or an answer too large to keep),
   * `validation_failed` (another body under the same key), `quota_unavailable`.
   */
  async claim(
    policy: CallerPolicy,
    idempotencyKey: string,
    route: string,
    body: Buffer,
  ): Promise<{ readonly replay: RecordedAnswer } | { readonly claim: Claim }> {
    if (!/^[\x21-\x7e]+$/.test(idempotencyKey) || idempotencyKey.length > keyCharactersMax) {
      throw new WeirError(
        'invalid_request',
        `"Idempotency-Key" must have 1 to ${keyCharactersMax} printable characters without blanks.`,
        { param: 'idempotency-key' },
      );
    }
    const place = this.placeOf(policy, idempotencyKey);
    const bodyHash = createHash('sha256').update(route).update('\n').update(body).digest('hex');
    const running = encode({ bodyHash, state: 'running' });
    const known = await this.ask(async () => {
      const taken = await this.redis.client.set(place, running, 'PX', claimMs, 'NX');
      return taken === null ? await this.redis.client.getBuffer(place) : null;
    });
    // Expired between the two commands: rare, and the next try finds it free.
    if (known === null) return { claim: this.claimAt(place, bodyHash) };
    return { replay: replayOf(decode(known), bodyHash) };
  }

  private claimAt(place: string, bodyHash: string): Claim {
    const heartbeat = setInterval(() => {
      this.redis.client.pexpire(place, claimMs).catch((error: unknown) => {
        this.logger.warn({ err: error }, 'an idempotency claim could not be renewed');
      });
    }, claimMs / 3);
    heartbeat.unref();
    const end = async (work: () => Promise<unknown>): Promise<void> => {
      clearInterval(heartbeat);
      try {
        await work();
      } catch (error) {
        // The claim runs out by itself; until then repetitions are told that it is running.
        this.logger.warn({ err: error }, 'an idempotency record could not be written');
      }
    };
    return {
      keep: (answer) => {
        const head =
          answer === null
            ? { bodyHash, state: 'too_large' as const }
            : {
                bodyHash,
                state: 'done' as const,
                status: answer.status,
                contentType: answer.contentType,
              };
        const bytes = encode(head, answer?.body);
        return end(() => this.redis.client.set(place, bytes, 'PX', keptMs));
      },
      forget: () => end(() => this.redis.client.del(place)),
    };
  }

  /** One caller's keys are nobody else's: the API key is part of the place. */
  private placeOf(policy: CallerPolicy, idempotencyKey: string): string {
    const hash = createHash('sha256').update(idempotencyKey).digest('hex');
    return `${this.redis.prefix}:${shardTag(policy.shard)}:idempotency:${policy.key.id}:${hash}`;
  }

  private async ask<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw new WeirError(
        'quota_unavailable',
        'Idempotency keys cannot be checked at the moment. Try again, or send none.',
        { headers: { 'retry-after': '1' } },
        { cause: error },
      );
    }
  }
}

type Head = {
  bodyHash: string;
  state: 'running' | 'done' | 'too_large';
  status?: number;
  contentType?: string;
};

/** A line of JSON, then the answer's bytes as they are. */
function encode(head: Head, body: Buffer = Buffer.alloc(0)): Buffer {
  return Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), body]);
}

function decode(bytes: Buffer): { head: Head; body: Buffer } {
  const end = bytes.indexOf('\n');
  const head: unknown = JSON.parse(bytes.toString('utf8', 0, end));
  if (!isJsonObject(head)) throw new Error('an idempotency record is broken');
  return { head: head as Head, body: bytes.subarray(end + 1) };
}

function replayOf({ head, body }: { head: Head; body: Buffer }, bodyHash: string): RecordedAnswer {
  if (head.bodyHash !== bodyHash) {
    throw new WeirError(
      'validation_failed',
      'This "Idempotency-Key" was used for another request. Take a new key for each new request.',
      { param: 'idempotency-key' },
    );
  }
  if (head.state === 'done' && head.status !== undefined && head.contentType !== undefined) {
    return { status: head.status, contentType: head.contentType, body };
  }
  throw new WeirError(
    'conflict',
    head.state === 'running'
      ? 'The call with this "Idempotency-Key" is still running. Try again shortly.'
      : 'The call with this "Idempotency-Key" was served, but its answer was too large to be kept.',
    head.state === 'running'
      ? { headers: { 'retry-after': '1' } }
      : { headers: { 'x-should-retry': 'false' } },
  );
}
