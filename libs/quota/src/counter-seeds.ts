import { calendarField, emptyCalendarRecord, writeCalendarRecord } from './counter-fields.js';
import type { CounterSeed } from './quota-engine.js';
import type { QuotaRedis } from './quota-redis.js';

/** Scopes written at a time. */
const batchScopes = 200;

/**
 * Raises the counters of one shard to what the roll-ups have, scope by scope; never lowers one. Seeds may come in any
 * order and number: they are read as a stream.
 */
export async function writeSeeds(
  redis: QuotaRedis,
  shard: number,
  seeds: AsyncIterable<CounterSeed> | Iterable<CounterSeed>,
): Promise<void> {
  const keys = redis.keys(shard);
  let pending = new Map<string, (string | Buffer)[]>();
  const flush = async (): Promise<void> => {
    const batch = pending;
    pending = new Map();
    await Promise.all(
      [...batch].map(([scopeId, records]) =>
        redis.run('seed', [keys.scope(scopeId)], [String(records.length / 2), ...records]),
      ),
    );
  };
  for await (const seed of seeds) {
    const records = pending.get(seed.scopeId) ?? [];
    pending.set(seed.scopeId, records);
    records.push(
      calendarField(seed.periodId, seed.model),
      writeCalendarRecord({
        ...emptyCalendarRecord,
        requests: seed.requests,
        inputTokens: seed.inputTokens,
        outputTokens: seed.outputTokens,
        costNano: seed.costNano,
      }),
    );
    if (pending.size >= batchScopes) await flush();
  }
  await flush();
}
