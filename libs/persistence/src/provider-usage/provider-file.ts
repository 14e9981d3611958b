import { parse } from 'csv-parse/sync';
import { z } from 'zod';

export const providerFileDialects = ['openai', 'anthropic'] as const;
export type ProviderFileDialect = (typeof providerFileDialects)[number];

/** What a provider says was used: one call where it names it, else a bucket of time and model. */
export type ProviderLine = {
  /** Line of the CSV, or number of the result in the JSON; from 1. */
  readonly line: number;
  /** The id that we sent along with the call, where the file has it. */
  readonly requestId: string | null;
  readonly model: string;
  /** Inclusive and exclusive. */
  readonly startsAt: Date;
  readonly endsAt: Date;
  /** null: the file does not count them. */
  readonly requests: bigint | null;
  /** All input, cached included. */
  readonly inputTokens: bigint;
  readonly cachedTokens: bigint;
  readonly outputTokens: bigint;
};

/** The file cannot be used; `faults` says where and why, at most a screenful. */
export class ProviderFileError extends Error {
  constructor(readonly faults: readonly string[]) {
    super(`the usage file cannot be read: ${faults.join('; ')}`);
    this.name = 'ProviderFileError';
  }
}

const faultsMax = 20;
const dayMs = 86_400_000;

/**
 * Reads a provider's own usage file, CSV or JSON (told apart by its first character), in the shapes of
 * https://platform.openai.com/docs/api-reference/usage/completions and
 * https://docs.anthropic.com/en/api/admin-api/usage-cost/get-messages-usage-report and of the CSV downloads of both
 * consoles. A file is read as a whole or not at all.
 *
 * @throws ProviderFileError
 */
export function readProviderFile(dialect: ProviderFileDialect, text: string): ProviderLine[] {
  const content = text.replace(/^\ufeff/, '').trim();
  if (content === '') throw new ProviderFileError(['the file is empty']);
  const isJson = content.startsWith('{') || content.startsWith('[');
  return isJson ? readJson(dialect, content) : readCsv(dialect, content);
}

const count = z.int().min(0).default(0);
const openAiResult = z.object({
  model: z.string().nullish(),
  num_model_requests: z.int().min(0).nullish(),
  input_tokens: count,
  input_cached_tokens: count,
  output_tokens: count,
  input_audio_tokens: count,
  output_audio_tokens: count,
});
const anthropicResult = z.object({
  model: z.string().nullish(),
  uncached_input_tokens: count,
  cache_read_input_tokens: count,
  cache_creation_input_tokens: count,
  cache_creation: z
    .object({ ephemeral_1h_input_tokens: count, ephemeral_5m_input_tokens: count })
    .nullish(),
  output_tokens: count,
});
const openAiBucket = z.object({
  start_time: z.int().min(0),
  end_time: z.int().min(0),
  results: z.array(openAiResult),
});
const anthropicBucket = z.object({
  starting_at: z.iso.datetime({ offset: true }),
  ending_at: z.iso.datetime({ offset: true }),
  results: z.array(anthropicResult),
});

function readJson(dialect: ProviderFileDialect, content: string): ProviderLine[] {
  const lines: ProviderLine[] = [];
  const schema = dialect === 'openai' ? openAiBucket : anthropicBucket;
  for (const [index, raw] of bucketsOf(content).entries()) {
    const parsed = schema.safeParse(raw);
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      const where = issue?.path.join('.') ?? '';
      throw new ProviderFileError([`bucket ${index + 1}: ${where}: ${issue?.message ?? ''}`]);
    }
    const bucket = parsed.data;
    const isOpenAi = 'start_time' in bucket;
    const startsAt = isOpenAi ? new Date(bucket.start_time * 1_000) : new Date(bucket.starting_at);
    const endsAt = isOpenAi ? new Date(bucket.end_time * 1_000) : new Date(bucket.ending_at);
    if (endsAt <= startsAt)
      throw new ProviderFileError([`bucket ${index + 1}: it ends before it starts`]);
    const figures = isOpenAi
      ? bucket.results.map(openAiFigures)
      : bucket.results.map(anthropicFigures);
    for (const figure of figures) {
      lines.push({ line: lines.length + 1, requestId: null, startsAt, endsAt, ...figure });
    }
  }
  return lines;
}

/** One page, several pages, or the buckets themselves. */
function bucketsOf(content: string): unknown[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(content);
  } catch (error) {
    throw new ProviderFileError([`not JSON: ${error instanceof Error ? error.message : ''}`]);
  }
  const pages = Array.isArray(parsed) ? (parsed as unknown[]) : [parsed];
  return pages.flatMap((page) => {
    const { data } = (page ?? {}) as { data?: unknown };
    return Array.isArray(data) ? (data as unknown[]) : [page];
  });
}

function openAiFigures(result: z.infer<typeof openAiResult>) {
  return {
    model: result.model ?? '',
    requests: result.num_model_requests == null ? null : BigInt(result.num_model_requests),
    // OpenAI's input and output hold the cached and the audio tokens.
    inputTokens: BigInt(result.input_tokens),
    cachedTokens: BigInt(result.input_cached_tokens),
    outputTokens: BigInt(result.output_tokens),
  };
}

function anthropicFigures(result: z.infer<typeof anthropicResult>) {
  const created = result.cache_creation;
  const written =
    created == null
      ? result.cache_creation_input_tokens
      : created.ephemeral_1h_input_tokens + created.ephemeral_5m_input_tokens;
  const cached = BigInt(result.cache_read_input_tokens);
  return {
    model: result.model ?? '',
    requests: null,
    // Anthropic's kinds are apart from each other.
    inputTokens: BigInt(result.uncached_input_tokens) + BigInt(written) + cached,
    cachedTokens: cached,
    outputTokens: BigInt(result.output_tokens),
  };
}

/** Names that a column goes by in the downloads of the two consoles, over the years. */
const columnNames: Record<ProviderFileDialect, Record<string, readonly string[]>> = {
  openai: {
    requestId: ['request_id', 'x_request_id', 'client_request_id'],
    model: ['model', 'snapshot_id'],
    start: ['start_time', 'start_time_iso', 'timestamp', 'date', 'at'],
    end: ['end_time', 'end_time_iso'],
    requests: ['num_model_requests', 'n_requests', 'requests'],
    input: ['input_tokens', 'n_context_tokens_total', 'prompt_tokens'],
    cached: ['input_cached_tokens', 'n_cached_context_tokens_total', 'cached_tokens'],
    output: ['output_tokens', 'n_generated_tokens_total', 'completion_tokens'],
  },
  anthropic: {
    requestId: ['request_id'],
    model: ['model_version', 'model'],
    start: ['usage_date_utc', 'starting_at', 'date'],
    end: ['ending_at'],
    requests: ['requests'],
    input: ['usage_input_tokens_no_cache', 'uncached_input_tokens', 'input_tokens'],
    cached: ['usage_input_tokens_cache_read', 'cache_read_input_tokens'],
    written5m: ['usage_input_tokens_cache_write_5m', 'cache_creation_input_tokens'],
    written1h: ['usage_input_tokens_cache_write_1h'],
    output: ['usage_output_tokens', 'output_tokens'],
  },
};

function readCsv(dialect: ProviderFileDialect, content: string): ProviderLine[] {
  let records: string[][];
  try {
    records = parse(content, { relax_column_count: true, skip_empty_lines: true });
  } catch (error) {
    throw new ProviderFileError([error instanceof Error ? error.message : String(error)]);
  }
  const [header = [], ...rows] = records;
  const names = header.map((name) => name.trim().toLowerCase().replaceAll(' ', '_'));
  const columns = new Map<string, number>();
  for (const [field, aliases] of Object.entries(columnNames[dialect])) {
    const index = aliases.map((alias) => names.indexOf(alias)).find((at) => at >= 0);
    if (index !== undefined) columns.set(field, index);
  }
  const missing = ['model', 'start', 'input', 'output'].filter((field) => !columns.has(field));
  if (missing.length > 0) {
    const wanted = missing.map((field) => columnNames[dialect][field]?.[0]);
    throw new ProviderFileError([`the header has no column ${wanted.join(', ')}`]);
  }
  const faults: string[] = [];
  const lines: ProviderLine[] = [];
  for (const [index, row] of rows.entries()) {
    const cell = (field: string): string => row[columns.get(field) ?? -1]?.trim() ?? '';
    try {
      lines.push(csvLine(dialect, index + 2, cell));
    } catch (error) {
      faults.push(`line ${index + 2}: ${error instanceof Error ? error.message : String(error)}`);
      if (faults.length === faultsMax) break;
    }
  }
  if (faults.length > 0) throw new ProviderFileError(faults);
  return lines;
}

function csvLine(
  dialect: ProviderFileDialect,
  line: number,
  cell: (field: string) => string,
): ProviderLine {
  const tokens = (field: string): bigint =>
    wholeNumber(cell(field) === '' ? '0' : cell(field), field);
  const requestId = cell('requestId') === '' ? null : cell('requestId');
  const { at: startsAt, isDay } = instantOf(cell('start'));
  const end = cell('end');
  const spanMs = isDay ? dayMs : 1;
  const endsAt = end === '' ? new Date(startsAt.getTime() + spanMs) : instantOf(end).at;
  if (endsAt <= startsAt) throw new RangeError('it ends before it starts');
  const cached = tokens('cached');
  const fresh = tokens('input');
  return {
    line,
    requestId,
    model: cell('model'),
    startsAt,
    endsAt,
    requests: cell('requests') === '' ? (requestId === null ? null : 1n) : tokens('requests'),
    inputTokens:
      dialect === 'openai' ? fresh : fresh + cached + tokens('written5m') + tokens('written1h'),
    cachedTokens: cached,
    outputTokens: tokens('output'),
  };
}

function wholeNumber(text: string, field: string): bigint {
  if (!/^\d{1,18}$/.test(text))
    throw new RangeError(`${field} is not a whole number: ${text.slice(0, 40)}`);
  return BigInt(text);
}

/** Unix seconds, a date (a whole day of UTC), or an ISO instant, read as UTC where it names no zone. */
function instantOf(text: string): { at: Date; isDay: boolean } {
  if (/^\d{9,11}$/.test(text)) return { at: new Date(Number(text) * 1_000), isDay: false };
  if (/^\d{4}-\d{2}-\d{2}$/.test(text)) return { at: new Date(`${text}T00:00:00Z`), isDay: true };
  const iso = text.replace(' ', 'T');
  const at = new Date(/(?:Z|[+-]\d{2}:?\d{2})$/.test(iso) ? iso : `${iso}Z`);
  if (Number.isNaN(at.getTime())) throw new RangeError(`not a time: ${text.slice(0, 40)}`);
  return { at, isDay: false };
}
