import type { EncodingName } from './rank-table.js';

/** How a vendor bills a picture; see `media.ts` for the formulas. */
export type ImageRule =
  | { readonly kind: 'tiles'; readonly base: number; readonly perTile: number }
  | { readonly kind: 'patches'; readonly multiplier: number }
  | { readonly kind: 'area'; readonly pixelsPerToken: number; readonly tokensMax: number }
  | { readonly kind: 'crops'; readonly perCrop: number; readonly cropsMax: number };

/** Tokens that a tool list adds to its own text. */
export interface ToolRule {
  readonly perFunction: number;
  readonly perObject: number;
  readonly perProperty: number;
  readonly perEnum: number;
  readonly perEnumItem: number;
  /** Once, when there is any tool. */
  readonly once: number;
}

export interface ModelFamily {
  readonly name: string;
  readonly encoding: EncodingName;
  /** Text tokens are counted with `encoding` and multiplied by this; 1 = the model's own encoding. */
  readonly factor: number;
  readonly perMessage: number;
  readonly perName: number;
  /** Once per request: the answer is primed with the assistant's role. */
  readonly priming: number;
  readonly tools: ToolRule;
  readonly image: ImageRule;
  readonly audioTokensPerSecond: number;
}

/**
 * Chat overhead: OpenAI Cookbook, "How to count tokens with tiktoken", section 6 (3 per message,
 * 1 per name, 3 for priming). Tools: the same notebook, section 7 (`num_tokens_for_tools`);
 * nested schemas, which it does not cover, repeat its figures per level.
 */
const CHAT = { perMessage: 3, perName: 1, priming: 3 } as const;
const O200K_TOOLS: ToolRule = {
  perFunction: 7,
  perObject: 3,
  perProperty: 3,
  perEnum: -3,
  perEnumItem: 3,
  once: 12,
};
const CL100K_TOOLS: ToolRule = { ...O200K_TOOLS, perFunction: 10 };
/**
 * Anthropic, "Tool use": the system prompt that tools add is 264 to 530 tokens by model; the
 * highest is taken. Others are not documented: the figures of OpenAI's, which are the wordiest.
 */
const CLAUDE_TOOLS: ToolRule = { ...CL100K_TOOLS, once: 530 };

/** OpenAI, "Images and vision", "Calculating costs": base and tile tokens, patch multipliers. */
const TILES_4O: ImageRule = { kind: 'tiles', base: 85, perTile: 170 };
const TILES_4O_MINI: ImageRule = { kind: 'tiles', base: 2833, perTile: 5667 };
const TILES_5: ImageRule = { kind: 'tiles', base: 70, perTile: 140 };
const TILES_O: ImageRule = { kind: 'tiles', base: 75, perTile: 150 };
const PATCHES_MINI: ImageRule = { kind: 'patches', multiplier: 1.62 };
const PATCHES_O4_MINI: ImageRule = { kind: 'patches', multiplier: 1.72 };
const PATCHES_NANO: ImageRule = { kind: 'patches', multiplier: 2.46 };
/**
 * Anthropic, "Vision": tokens = width × height / 750 after scaling down to the model's largest
 * size: about 1,600 tokens, 4,784 for models that take 2,576 pixels on the long edge.
 */
const CLAUDE_IMAGE: ImageRule = { kind: 'area', pixelsPerToken: 750, tokensMax: 4_784 };
/** Google, "Understand and count tokens": 258 tokens per crop, crop edge = short edge / 1.5. */
const GEMINI_IMAGE: ImageRule = { kind: 'crops', perCrop: 258, cropsMax: 24 };
/** Qwen2-VL: one token per 28 × 28 pixels, at most 16,384. The finest grid in use: errs high. */
const OTHER_IMAGE: ImageRule = { kind: 'area', pixelsPerToken: 28 * 28, tokensMax: 16_384 };

/** OpenAI, "Realtime costs": user audio is 1 token per 100 ms. Gemini: 32 tokens per second. */
const OPENAI_AUDIO = 10;
const OTHER_AUDIO = 32;

function openAi(name: string, encoding: EncodingName, image: ImageRule): ModelFamily {
  const tools = encoding === 'o200k_base' ? O200K_TOOLS : CL100K_TOOLS;
  return { ...CHAT, name, encoding, factor: 1, tools, image, audioTokensPerSecond: OPENAI_AUDIO };
}

function foreign(name: string, factor: number, own: Partial<ModelFamily> = {}): ModelFamily {
  return {
    ...CHAT,
    // Chat templates of other vendors wrap a message in up to five special tokens.
    perMessage: 5,
    name,
    encoding: 'o200k_base',
    factor,
    tools: CL100K_TOOLS,
    image: OTHER_IMAGE,
    audioTokensPerSecond: OTHER_AUDIO,
    ...own,
  };
}

/**
 * The calibration table; the first pattern that matches the bare model name wins. Encodings of
 * OpenAI's models: tiktoken's `model.py`. The factors of other vendors are upper ends, as their
 * tokenizers are not public or not shipped here: they steer reservations, while bills follow the
 * usage that the upstream reports.
 */
const FAMILIES: readonly (readonly [RegExp, ModelFamily])[] = [
  [/^gpt-oss/, foreign('gpt-oss', 1.05)], // o200k_harmony: o200k plus channel markers
  [/^gpt-4o-mini/, openAi('gpt-4o-mini', 'o200k_base', TILES_4O_MINI)],
  [/^(gpt-4o|chatgpt-4o|gpt-4\.5)/, openAi('gpt-4o', 'o200k_base', TILES_4O)],
  [/^gpt-4\.1-mini/, openAi('gpt-4.1-mini', 'o200k_base', PATCHES_MINI)],
  [/^gpt-4\.1-nano/, openAi('gpt-4.1-nano', 'o200k_base', PATCHES_NANO)],
  [/^gpt-4\.1/, openAi('gpt-4.1', 'o200k_base', TILES_4O)],
  [/^gpt-5[^/]*-mini/, openAi('gpt-5-mini', 'o200k_base', PATCHES_MINI)],
  [/^gpt-5[^/]*-nano/, openAi('gpt-5-nano', 'o200k_base', PATCHES_NANO)],
  [/^gpt-5(-|$)/, openAi('gpt-5', 'o200k_base', TILES_5)],
  // Later 5.x models bill patches at up to 1.2; the mini's multiplier covers them.
  [/^gpt-5/, openAi('gpt-5.x', 'o200k_base', PATCHES_MINI)],
  [/^o4-mini/, openAi('o4-mini', 'o200k_base', PATCHES_O4_MINI)],
  [/^(o\d|codex|computer-use)/, openAi('o-series', 'o200k_base', TILES_O)],
  [/^(gpt-4|gpt-3\.5|gpt-35)/, openAi('gpt-4', 'cl100k_base', TILES_4O)],
  [/^text-embedding/, openAi('text-embedding', 'cl100k_base', TILES_4O)],
  // Published comparisons put Claude 3.5 at 1.16× (prose) to 1.3× (code) GPT-4o's tokens; Anthropic
  // states up to 1.35× more for its newer tokenizer: 1.3 × 1.35.
  [/^claude/, foreign('claude', 1.75, { tools: CLAUDE_TOOLS, image: CLAUDE_IMAGE })],
  // 256k-token vocabulary, as fine as o200k, but single digits.
  [/^(gemini|gemma)/, foreign('gemini', 1.3, { image: GEMINI_IMAGE })],
  // 151k tokens from cl100k's merges, single digits.
  [/^(qwen|qwq|qvq)/, foreign('qwen', 1.35)],
  // 128k tokens.
  [/^deepseek/, foreign('deepseek', 1.35)],
  // The demo provider of this repository counts its prompts and cuts its answers with o200k itself.
  [/^demo-/, openAi('demo', 'o200k_base', TILES_4O)],
];
const UNKNOWN = foreign('unknown', 1.75);

/**
 * The family of a model by its name; provider prefixes (`openai/gpt-4o`) and fine-tune prefixes
 * (`ft:gpt-4o-mini:...`) are ignored. Unknown names get the family that errs highest.
 */
export function modelFamily(model: string): ModelFamily {
  const known = familyOf.get(model);
  if (known !== undefined) return known;
  const bare = model.toLowerCase().replace(/^.*\//, '').replace(/^ft:/, '');
  const family = FAMILIES.find(([pattern]) => pattern.test(bare))?.[1] ?? UNKNOWN;
  if (familyOf.size >= KNOWN_MODELS_MAX) familyOf.clear();
  familyOf.set(model, family);
  return family;
}

/** An installation has a few dozen models, and asks for each at every call. */
const KNOWN_MODELS_MAX = 1_000;
const familyOf = new Map<string, ModelFamily>();
