// Usage as a mid-sized installation has it: 8 enterprises with 40 departments (up to three levels), 400 users and
// 1,000 keys in all, and 6 models. Few keys make most of the calls.

import {
  costPicoOf,
  defaultShardCount,
  nanoFromPico,
  newId,
  noTokens,
  periodAt,
  shardOf,
  usageEventOf,
} from '../../../libs/domain/dist/index.js';
import { seededRandom } from './figures.mjs';

const ENTERPRISES = 8;
export const KEYS_DEFAULT = 1_000;
const KEYS_PER_DEPARTMENT = 25;
const KEYS_PER_USER = 2.5;
const TIME_ZONES = [
  'Asia/Shanghai',
  'Europe/Berlin',
  'America/New_York',
  'UTC',
  'Asia/Kolkata',
  'America/St_Johns',
  'Australia/Sydney',
  'America/Los_Angeles',
];

/** Pico-USD per token, as of list prices between 0.15 and 15 per million. */
const MODELS = [
  { alias: 'chat-small', input: '150000', cachedInput: '75000', output: '600000' },
  { alias: 'chat-large', input: '2500000', cachedInput: '1250000', output: '10000000' },
  { alias: 'reasoning', input: '1100000', cachedInput: '550000', output: '4400000' },
  { alias: 'code', input: '3000000', cachedInput: '300000', output: '15000000' },
  { alias: 'long-context', input: '1250000', cachedInput: '310000', output: '5000000' },
  { alias: 'embed', input: '20000', cachedInput: '20000', output: '0' },
];
const MODEL_WEIGHTS = [0.42, 0.64, 0.74, 0.86, 0.93, 1];
const PROVIDERS = ['OpenAI', 'Anthropic'].map((name) => ({ id: newId(), name }));

const ref = (name) => ({ id: newId(), name });

/**
 * The tree of all enterprises; the same in shape for each run, with new ids.
 *
 * @param {number} keyCount in all enterprises together; departments and users follow from it
 */
export function makeTenants(keyCount = KEYS_DEFAULT) {
  const keysEach = Math.ceil(keyCount / ENTERPRISES);
  const departmentsEach = Math.ceil(keysEach / KEYS_PER_DEPARTMENT);
  const usersEach = Math.ceil(keysEach / KEYS_PER_USER);
  const models = MODELS.map(({ alias, ...picoPerToken }, index) => ({
    alias,
    served: `${alias}-2026-10-01`,
    provider: PROVIDERS[index % PROVIDERS.length],
    price: { id: newId(), picoPerToken, picoPerRequest: '0' },
  }));
  return Array.from({ length: ENTERPRISES }, (_, e) => {
    const enterprise = ref(`Enterprise ${e + 1}`);
    const paths = [];
    for (let d = 0; d < departmentsEach; d += 1) {
      // Every department but the first is below the one of half its number, three levels at most.
      const parent = d === 0 ? [] : paths[(d - 1) >> 1];
      paths.push([...parent.slice(0, 2), ref(`Department ${d + 1}`)]);
    }
    const users = Array.from({ length: usersEach }, (_, u) => ({
      ref: ref(`User ${u + 1} of ${enterprise.name}`),
      departments: paths[u % paths.length],
    }));
    const keys = Array.from({ length: keysEach }, (_, k) => ({
      ref: ref(`key-${k + 1}`),
      user: users[k % users.length],
    }));
    return {
      enterprise,
      timeZone: TIME_ZONES[e % TIME_ZONES.length],
      shard: shardOf(enterprise.id, defaultShardCount),
      paths,
      users,
      keys,
      models,
    };
  });
}

/** The enterprises' own rows, so that days are cut in their zones. */
export async function storeTenants(pool, tenants) {
  for (const { enterprise, timeZone } of tenants) {
    await pool.query(
      `insert into enterprise (id, name, time_zone, currency, settings, updated_at)
       values ($1, $2, $3, 'USD', '{}', now())`,
      [enterprise.id, enterprise.name, timeZone],
    );
  }
}

/**
 * A source of usage events in the order in which calls are settled, with gap-free numbers per shard.
 *
 * @param {ReturnType<typeof makeTenants>} tenants
 * @param {{ seed: number, epoch: string }} options
 */
export function usageSource(tenants, { seed, epoch }) {
  const random = seededRandom(seed);
  const seqs = new Map();
  const between = (low, high) => low + Math.floor(random() * (high - low + 1));
  // Most prompts are short and a few are long.
  const skewed = (low, high) => low + Math.floor(random() ** 3 * (high - low));

  const usageOf = (model) => {
    if (model.alias === 'embed') return { ...noTokens, input: skewed(20, 6_000) };
    const prompt = skewed(80, 16_000);
    const cachedInput = random() < 0.4 ? Math.floor(prompt * 0.6) : 0;
    const output = skewed(20, 2_000);
    const reasoning = model.alias === 'reasoning' ? Math.floor(output * 0.7) : 0;
    return { ...noTokens, input: prompt - cachedInput, cachedInput, output, reasoning };
  };
  const periodIds = new Map();
  // A month begins on a quarter of an hour in every zone.
  const periodIdOf = ({ enterprise, timeZone }, atMs) => {
    const key = `${enterprise.id}|${Math.floor(atMs / 900_000)}`;
    if (!periodIds.has(key)) periodIds.set(key, periodAt('month', atMs, timeZone).id);
    return periodIds.get(key);
  };
  const statusOf = () => {
    const draw = random();
    if (draw < 0.965) return 'ok';
    if (draw < 0.985) return 'cancelled';
    if (draw < 0.993) return 'partial';
    return draw < 0.998 ? 'error' : 'expired';
  };

  /**
   * @param {number} atMs the reservation
   * @param {number} [endedAtMs] default: some seconds later
   * @returns the event as settle gets it, and the position that settle gives it
   */
  return function next(atMs, endedAtMs = atMs + between(300, 9_000)) {
    const tenant = tenants[Math.floor(random() ** 1.5 * tenants.length)];
    const key = tenant.keys[Math.floor(random() ** 2 * tenant.keys.length)];
    const draw = random();
    const model = tenant.models[MODEL_WEIGHTS.findIndex((limit) => draw < limit)];
    const usage = usageOf(model);
    const status = statusOf();
    const costPico = costPicoOf(usage, model.price);
    const id = newId(atMs);
    const at = new Date(atMs).toISOString();
    const isEmbedding = model.alias === 'embed';
    const seq = (seqs.get(tenant.shard) ?? 0) + 1;
    seqs.set(tenant.shard, seq);
    const event = usageEventOf(id, {
      enterprise: tenant.enterprise,
      departments: key.user.departments,
      user: key.user.ref,
      key: key.ref,
      currency: 'USD',
      modelAsked: model.alias,
      modelServed: model.served,
      provider: model.provider,
      route: isEmbedding ? '/v1/embeddings' : '/v1/chat/completions',
      streamed: !isEmbedding && random() < 0.7,
      requestId: `req_${id}`,
      attempt: random() < 0.98 ? 1 : 2,
      price: model.price,
      queueWaitMs: 0,
      tags: random() < 0.3 ? { feature: `feature-${between(1, 20)}`, env: 'production' } : {},
      kind: 'usage',
      adjusts: null,
      usage,
      costPico: costPico.toString(),
      costNano: nanoFromPico(costPico).toString(),
      periodId: periodIdOf(tenant, atMs),
      reservedAt: at,
      startedAt: at,
      firstTokenAt: isEmbedding ? null : new Date(Math.min(atMs + 250, endedAtMs)).toISOString(),
      endedAt: new Date(endedAtMs).toISOString(),
      status,
      estimated: status === 'cancelled' || status === 'expired',
      late: false,
    });
    return { event, position: { shard: tenant.shard, epoch, seq } };
  };
}

/** The event as it travels through Kafka. */
export function travelling({ event, position }) {
  return JSON.stringify({ ...event, data: { ...event.data, position } });
}

const CHUNK_BYTES = 64 * 1024 * 1024;

/** Event texts made ahead of the clock, outside of the JavaScript heap: key and value of each. */
export class EventSpool {
  #chunks = [];
  #used = CHUNK_BYTES;
  #chunkOf = [];
  #starts = [];
  #ends = [];
  #ids = [];

  get length() {
    return this.#ids.length;
  }

  add(id, text) {
    const bytes = Buffer.byteLength(text);
    if (this.#used + bytes > CHUNK_BYTES) {
      this.#chunks.push(Buffer.allocUnsafeSlow(CHUNK_BYTES));
      this.#used = 0;
    }
    this.#chunks.at(-1).write(text, this.#used);
    this.#chunkOf.push(this.#chunks.length - 1);
    this.#starts.push(this.#used);
    this.#ends.push(this.#used + bytes);
    this.#ids.push(id);
    this.#used += bytes;
  }

  id(index) {
    return this.#ids[index];
  }

  value(index) {
    return this.#chunks[this.#chunkOf[index]].subarray(this.#starts[index], this.#ends[index]);
  }
}
