import { loadConfig, createLogger, runMain } from '@weir/platform';
import { connectKafka } from '@weir/metering';
import { openDatabase, UsageLedger } from '@weir/persistence';
import { topicsOf, workerConfigSchema } from './config.js';

const usage = `usage: node dist/replay.js [--from <partition>:<offset>]...

Reads the usage topic again, from the given offsets (partitions that are not named: from their beginning) up to where it
ends now, and books what is not in the books. What is there stays as it is: it can be run at any time, also while
workers run, and as often as one likes. Takes the worker's environment.`;

/** `--from 3:1200 --from 0:0` → partition 3 from 1200, partition 0 from 0. Null when it cannot be read. */
export function startsOf(args: readonly string[]): ReadonlyMap<number, bigint> | null {
  const starts = new Map<number, bigint>();
  for (let at = 0; at < args.length; at += 2) {
    const match = /^(\d{1,6}):(\d{1,18})$/.exec(args[at + 1] ?? '');
    if (args[at] !== '--from' || match === null) return null;
    starts.set(Number(match[1]), BigInt(match[2] ?? 0));
  }
  return starts;
}

export type ReplayResult = {
  readonly read: number;
  readonly booked: number;
  readonly repeated: number;
  readonly conflicts: number;
  readonly deadLetters: number;
};

/** Books a topic again. Safe by the ledger's own key: nothing is booked twice. */
export async function replay(
  broker: ReturnType<typeof connectKafka>,
  ledger: UsageLedger,
  options: { topic: string; from: ReadonlyMap<number, bigint>; sliceMax: number },
): Promise<ReplayResult> {
  const total = { read: 0, booked: 0, repeated: 0, conflicts: 0, deadLetters: 0 };
  await broker.readAgain({
    ...options,
    handle: async ({ topic, partition, records }) => {
      const result = await ledger.bookSlice({ topic, partition, records, order: 'unfenced' });
      if (result.outcome !== 'booked') throw new Error('a replay has no fence to meet');
      total.read += records.length;
      total.booked += result.booked;
      total.repeated += result.repeated;
      total.conflicts += result.conflicts;
      total.deadLetters += result.deadLetters;
    },
  });
  return total;
}

export async function main(args: readonly string[]): Promise<void> {
  const from = startsOf(args);
  if (from === null) throw new Error(usage);
  const config = loadConfig(workerConfigSchema);
  if (config.KAFKA_BROKERS.length === 0) {
    throw new Error('KAFKA_BROKERS is empty: without Kafka there is no topic to read again');
  }
  const logger = createLogger({ name: 'replay', level: config.LOG_LEVEL });
  const broker = connectKafka({ brokers: config.KAFKA_BROKERS, clientId: 'weir-replay', logger });
  const database = openDatabase({ url: config.DATABASE_URL, poolMax: 4 });
  try {
    const result = await replay(broker, new UsageLedger(database.pool), {
      topic: topicsOf(config).usage,
      from,
      sliceMax: config.LEDGER_SLICE_MAX,
    });
    process.stdout.write(`${JSON.stringify(result)}\n`);
  } finally {
    await broker.close();
    await database.close();
  }
}

if (process.argv[1] === import.meta.filename) await runMain(() => main(process.argv.slice(2)));
