import { z } from 'zod';

export const faults = [
  'none',
  'connect_reset',
  'hang_before_headers',
  'hang_mid_stream',
  'eof_mid_stream',
  'reset_mid_stream',
  'error_event_mid_stream',
  'eof_after_usage',
  'usage_twice',
  'usage_null',
  'malformed_json',
] as const;

const milliseconds = z.int().min(0).max(3_600_000);
const tokens = z.int().min(0).max(10_000_000);

/** How the provider behaves. README.md explains each setting; the defaults are a fast provider without faults. */
export const settingsSchema = z.strictObject({
  headers_delay_ms: milliseconds,
  first_token_delay_ms: milliseconds,
  tokens_per_second: z.number().min(0).max(1_000_000),
  prompt_tokens: tokens.nullable(),
  cached_tokens: tokens,
  output_tokens: tokens.nullable(),
  ignore_max_tokens: z.boolean(),
  reasoning_tokens: tokens,
  usage: z.enum(['auto', 'always', 'never']),
  tokens_per_chunk: z.int().min(1).max(10_000),
  events_per_tick: z.int().min(0).max(10_000),
  split_bytes: z.int().min(0).max(65_536),
  crlf: z.boolean(),
  comments: z.boolean(),
  fault: z.union([
    z.enum(faults),
    z.string().regex(/^status:[45]\d\d$/, 'must be status:<400..599>'),
  ]),
  fault_after_tokens: tokens.nullable(),
  fault_every: z.int().min(1).max(1_000_000),
  retry_after_seconds: z.int().min(0).max(86_400).nullable(),
});
export type Settings = z.infer<typeof settingsSchema>;

const patchSchema = settingsSchema.partial();
export type SettingsPatch = { [Name in keyof Settings]?: Settings[Name] | undefined };

export const defaultSettings: Settings = Object.freeze({
  headers_delay_ms: 0,
  first_token_delay_ms: 0,
  tokens_per_second: 0,
  prompt_tokens: null,
  cached_tokens: 0,
  output_tokens: null,
  ignore_max_tokens: false,
  reasoning_tokens: 0,
  usage: 'auto',
  tokens_per_chunk: 1,
  events_per_tick: 0,
  split_bytes: 0,
  crlf: false,
  comments: false,
  fault: 'none',
  fault_after_tokens: null,
  fault_every: 1,
  retry_after_seconds: null,
});

/** A setting that does not exist or has a value that it cannot have. Its text is for the caller. */
export class SettingsError extends Error {}

/** @throws SettingsError naming every wrong setting. */
export function parsePatch(value: unknown): SettingsPatch {
  const result = patchSchema.safeParse(value);
  if (result.success) return result.data;
  const texts = result.error.issues.map((issue) => {
    const name = issue.path.join('.');
    return name === '' ? issue.message : `${name}: ${issue.message}`;
  });
  throw new SettingsError(texts.join('; '));
}

const parsedDirectives = new Map<string, SettingsPatch>();
const parsedDirectivesMax = 1_000;

/**
 * Reads directives such as `eof_mid_stream;output_tokens=5;crlf=true`: a name alone is a fault (`status:429` too),
 * `name=value` is a setting.
 *
 * @throws SettingsError
 */
export function parseDirectives(text: string): SettingsPatch {
  const known = parsedDirectives.get(text);
  if (known !== undefined) return known;
  const raw: Record<string, unknown> = {};
  for (const directive of text.split(/[;,]/)) {
    const [name = '', value] = directive.trim().split('=', 2);
    if (name === '') continue;
    if (value === undefined) raw['fault'] = name;
    else raw[name] = fromText(value);
  }
  const patch = parsePatch(raw);
  // Callers choose these texts: the memory of them is bounded.
  if (parsedDirectives.size >= parsedDirectivesMax) parsedDirectives.clear();
  parsedDirectives.set(text, patch);
  return patch;
}

const headerPrefix = 'x-demo-';

/**
 * Reads headers such as `x-demo-output-tokens: 5`. Undefined when there are none.
 *
 * @throws SettingsError
 */
export function parseHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): SettingsPatch | undefined {
  let raw: Record<string, unknown> | undefined;
  for (const name in headers) {
    if (!name.startsWith(headerPrefix)) continue;
    raw ??= {};
    raw[name.slice(headerPrefix.length).replaceAll('-', '_')] = fromText(String(headers[name]));
  }
  return raw === undefined ? undefined : parsePatch(raw);
}

function fromText(text: string): unknown {
  if (text === 'true') return true;
  if (text === 'false') return false;
  if (text === 'null') return null;
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) : text;
}
