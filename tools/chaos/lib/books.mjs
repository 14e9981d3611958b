// The four books of the same calls (the caller's, the provider's bill, the ledger, the counters), and where they differ.

import {
  defaultShardCount,
  outboxKey,
  shardOf,
  usageTopic,
} from '../../../libs/domain/dist/index.js';
import { connectQuotaRedis, createRedisEngine } from '../../../libs/quota/dist/index.js';
import { bodyOf } from '../../launcher/lib/admin-api.mjs';

const BILL_PAGE = 10_000;
const REQUEST_MS = 15_000;
const REDIS_MS = 5_000;
const OFFENDERS_MAX = 20;
const PREFIX = 'weir';

/** Reads all books of a stack. Close it when done. */
export class Books {
  #redis;
  #engine;

  /**
   * @param {{ pool: import('pg').Pool, redisUrl: string, demoProviderUrl: string, demoApiKey: string, enterpriseId: string, timeZone: string,
   *   broker: import('../../../libs/metering/dist/index.js').MessageBroker }} options
   */
  constructor(options) {
    this.options = options;
    this.#redis = connectQuotaRedis({
      url: options.redisUrl,
      prefix: PREFIX,
      shardCount: defaultShardCount,
      commandTimeoutMs: REDIS_MS,
    });
    this.#engine = createRedisEngine(this.#redis);
  }

  async close() {
    await this.#redis.close();
  }

  /** What is still on its way, in words; empty once all is at rest. */
  async unrest() {
    const { pool, broker } = this.options;
    const waiting = [];
    for (let shard = 0; shard < defaultShardCount; shard += 1) {
      const leases = await this.#redis.client.zcard(this.#redis.keys(shard).leases);
      const entries = await this.#redis.client.xlen(outboxKey(PREFIX, shard));
      if (leases > 0) waiting.push(`${leases} leases of shard ${shard}`);
      if (entries > 0) waiting.push(`${entries} events in the outbox of shard ${shard}`);
    }
    const { rows } = await pool.query(
      'select partition, next_offset from ledger_offset where topic = $1',
      [usageTopic],
    );
    const next = new Map(rows.map((row) => [row.partition, BigInt(row.next_offset)]));
    for (const { partition, low, high } of await broker.offsetsOf(usageTopic)) {
      const lag = high - (next.get(partition) ?? low);
      if (lag > 0n) waiting.push(`${lag} records of partition ${partition}`);
    }
    return waiting;
  }

  async bill() {
    const byRequest = new Map();
    for (let after = 0; ;) {
      const url = `${this.options.demoProviderUrl}/demo/bill/entries?limit=${BILL_PAGE}&after=${after}`;
      const headers = { authorization: `Bearer ${this.options.demoApiKey}` };
      const signal = AbortSignal.timeout(REQUEST_MS);
      const { entries } = await bodyOf(await fetch(url, { headers, signal }));
      for (const entry of entries) {
        after = entry.seq;
        if (entry.outcome === 'refused' || entry.request_id === null) continue;
        pushTo(byRequest, entry.request_id, entry);
      }
      if (entries.length < BILL_PAGE) return byRequest;
    }
  }

  async rows() {
    const { rows } = await this.options.pool.query(
      `select event_id, request_id, kind, adjusts, status, estimated, attempt, cost_pico, cost_nano, shard, epoch, seq,
         ended_at from usage_event where enterprise_id = $1 order by event_id`,
      [this.options.enterpriseId],
    );
    return rows;
  }

  /** Faults that the ledger knows of by itself, in words. */
  async ledgerFaults() {
    const { pool, enterpriseId } = this.options;
    const faults = [];
    const progress = await pool.query(
      'select shard, epoch, watermark_seq, highest_seq from ledger_progress where watermark_seq <> highest_seq',
    );
    for (const { shard, epoch, watermark_seq: low, highest_seq: high } of progress.rows) {
      faults.push({
        kind: 'sequence',
        text: `shard ${shard}, epoch ${epoch}: complete up to ${low}, highest ${high}`,
      });
    }
    const dead = await pool.query('select topic, partition, "offset", reason from dead_letter');
    for (const { topic, partition, offset, reason } of dead.rows) {
      faults.push({ kind: 'dead-letter', text: `${topic}/${partition}/${offset}: ${reason}` });
    }
    const conflicts = await pool.query('select event_id, reason from ledger_conflict');
    for (const { event_id: id, reason } of conflicts.rows) {
      faults.push({ kind: 'conflict', text: `${id}: ${reason}` });
    }
    const sums = (table, filter) =>
      `(select coalesce(sum(cost_pico), 0) || ' pico, ' || ${filter} || ' calls' from ${table} where enterprise_id = $1)`;
    const { rows } = await pool.query(
      `select ${sums('usage_event', "count(*) filter (where kind = 'usage')")} as events,
         ${sums('usage_rollup', 'coalesce(sum(requests), 0)')} as quarters,
         ${sums('usage_rollup_day', 'coalesce(sum(requests), 0)')} as days,
         ${sums('usage_rollup_month', 'coalesce(sum(requests), 0)')} as months`,
      [enterpriseId],
    );
    const [{ events, ...rollups }] = rows;
    for (const [table, sum] of Object.entries(rollups)) {
      if (sum !== events) faults.push({ kind: 'roll-up', text: `rows ${events}; ${table} ${sum}` });
    }
    return faults;
  }

  /**
   * The counters of the month of every scope beside the ledger's sums.
   *
   * @returns the sum of all differences (requests, tokens and nano-currency alike), what is still reserved, and where
   */
  async counters() {
    const { pool, enterpriseId, timeZone } = this.options;
    const { rows: scopes } = await pool.query(
      `select 'enterprise' as level, id, name from enterprise where id = $1
       union all select 'department', id, name from department where enterprise_id = $1
       union all select 'user', id, name from app_user where enterprise_id = $1
       union all select 'key', id, name from api_key where enterprise_id = $1`,
      [enterpriseId],
    );
    const usages = await this.#engine.peek({
      shard: shardOf(enterpriseId, defaultShardCount),
      enterpriseId,
      timeZone,
      scopes: scopes.map(({ level, id, name }) => ({ level, id, name, limits: [] })),
    });
    const { rows: sums } = await pool.query(
      `select scope, count(*) filter (where kind = 'usage') as requests, sum(cost_nano) as nano,
         sum(input_tokens + cached_input_tokens + cache_write_tokens + audio_input_tokens + image_input_tokens) as input,
         sum(output_tokens + audio_output_tokens) as output
       from usage_event, unnest(department_ids || array[enterprise_id, user_id, key_id]) as scope
       where enterprise_id = $1 and period_id = $2 group by scope`,
      [enterpriseId, usages[0]?.month.periodId],
    );
    const booked = new Map(sums.map((row) => [row.scope, row]));
    let difference = 0n;
    let reserved = 0n;
    const offenders = [];
    for (const [index, { scopeId, inFlight, month }] of usages.entries()) {
      const row = booked.get(scopeId) ?? { requests: 0, nano: 0, input: 0, output: 0 };
      const pairs = [
        ['requests', month.requests, BigInt(row.requests)],
        ['input tokens', month.inputTokens, BigInt(row.input)],
        ['output tokens', month.outputTokens, BigInt(row.output)],
        ['nano', month.costNano, BigInt(row.nano)],
      ];
      const scope = `${scopes[index].level} ${scopes[index].name} (${scopeId})`;
      for (const [name, counter, ledger] of pairs) {
        if (counter === ledger) continue;
        difference += distance(counter, ledger);
        offenders.push(`${scope}: ${name} counter ${counter}, ledger ${ledger}`);
      }
      const left = month.reservedTokens + month.reservedCostNano + BigInt(inFlight);
      if (left !== 0n) {
        reserved += left;
        offenders.push(
          `${scope}: ${inFlight} in flight, reserved ${month.reservedTokens} tokens, ${month.reservedCostNano} nano`,
        );
      }
    }
    return { difference, reserved, offenders };
  }
}

/**
 * Compares the caller's, the provider's and the ledger's view of every call.
 *
 * @param {{ calls: Map<string, import('./traffic.mjs').ChaosCall>, bill: Map<string, any[]>, rows: any[],
 *   gatewayKills: { gateway: number, atMs: number }[] }} books
 */
export function compareCalls({ calls, bill, rows, gatewayKills }) {
  const usage = new Map();
  const adjustments = new Map();
  for (const row of rows) {
    if (row.kind === 'usage') pushTo(usage, row.request_id, row);
    else pushTo(adjustments, row.adjusts, row);
  }
  const found = {
    calls: 0,
    rows: rows.filter(({ kind }) => kind === 'usage').length,
    holes: 0,
    duplicates: 0,
    strangers: 0,
    moneyDiff: 0n,
    estimatedCalls: 0,
    estimatedMoneyDiff: 0n,
    estimatedAlive: 0,
    corrected: 0,
    offenders: /** @type {string[]} */ ([]),
  };
  const blame = (text) => {
    if (found.offenders.length < OFFENDERS_MAX) found.offenders.push(text);
  };

  for (const requestId of new Set([...calls.keys(), ...bill.keys(), ...usage.keys()])) {
    const call = calls.get(requestId);
    const entries = bill.get(requestId) ?? [];
    const booked = usage.get(requestId) ?? [];
    const billed = entries.reduce((sum, { cost_pico: cost }) => sum + BigInt(cost), 0n);
    // What the caller saw begin, and what the provider wants money for, was admitted.
    const isAdmitted = call?.status === 200 || billed > 0n;
    if (isAdmitted || booked.length > 0) found.calls += 1;
    if (call === undefined) {
      found.strangers += 1;
      blame(`${requestId}: booked or billed, but nobody made this call`);
    }
    if (isAdmitted && booked.length === 0) {
      found.holes += 1;
      found.moneyDiff += billed;
      blame(`${requestId}: no row; ${describe(call)}; billed ${billed} pico`);
      continue;
    }
    if (booked.length > Math.max(1, entries.length)) {
      found.duplicates += booked.length - Math.max(1, entries.length);
      blame(`${requestId}: ${booked.length} rows ${booked.map(nameOf).join(', ')}`);
    }
    if (booked.length === 0) continue;

    const corrections = booked.flatMap(({ event_id: id }) => adjustments.get(id) ?? []);
    const charged = [...booked, ...corrections].reduce(
      (sum, { cost_pico: cost }) => sum + BigInt(cost),
      0n,
    );
    if (corrections.length > 0) found.corrected += 1;
    const isEstimated = booked.some(({ estimated }) => estimated) && corrections.length === 0;
    if (!isEstimated) {
      if (charged === billed) continue;
      found.moneyDiff += distance(charged, billed);
      blame(
        `${requestId}: charged ${charged} pico, billed ${billed}; ${describe(call)}; ${booked.map(nameOf).join(', ')}`,
      );
      continue;
    }
    found.estimatedCalls += 1;
    found.estimatedMoneyDiff += charged - billed;
    const hasDied = gatewayKills.some(
      ({ gateway, atMs }) => gateway === call?.gateway && atMs >= call.startedMs,
    );
    if (hasDied) continue;
    found.estimatedAlive += 1;
    blame(
      `${requestId}: estimated although its gateway lived; ${describe(call)}; ${booked.map(nameOf).join(', ')}`,
    );
  }
  return found;
}

function describe(call) {
  if (call === undefined) return 'unknown to the caller';
  const { outcome, status, reason, gateway, startedMs, endedMs } = call;
  const at = new Date(startedMs).toISOString();
  return `${outcome}${status === null ? '' : ` ${status}`}${reason === null ? '' : ` (${reason.slice(0, 120)})`}, gateway ${gateway + 1}, ${at}, ${(endedMs ?? 0) - startedMs} ms`;
}

function nameOf({ event_id: id, status, estimated, shard, epoch, seq }) {
  return `${id} (${status}${estimated ? ', estimated' : ''}, shard ${shard}, epoch ${epoch}, seq ${seq})`;
}

function pushTo(map, key, value) {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}

function distance(a, b) {
  return a > b ? a - b : b - a;
}
