import { imageSize, type ImageSize } from './image-size.js';
import type { ImageRule, ModelFamily } from './model-families.js';

/** OpenAI caps what it looks at in a picture at 1,536 patches of 32 × 32 pixels. */
const PATCHES_MAX = 1_536;
/** `detail: original` is billed without that cap; 10,000 patches is the highest documented. */
const PATCHES_ORIGINAL_MAX = 10_000;
/** A 768 × 2048 picture, the largest after scaling, is 2 × 4 tiles of 512 pixels. */
const TILES_MAX = 8;
/** Speech is seldom coded below 16 kbit/s: at this rate the duration errs high. */
const COMPRESSED_AUDIO_BYTES_PER_SECOND = 2_000;
/** Anthropic, "PDF support": 1,500 to 3,000 text tokens per page, and the page as a picture. */
const PAGE_TEXT_TOKENS = 3_000;
/** Printed pages take 10 to 100 KB in a PDF; small pages make more of them: errs high. */
const PAGE_BYTES = 20_000;
/** The largest page count that the vendors accept in one request. */
const PAGES_MAX = 600;
/** A file known by id or address alone: ten dense pages with their pictures. */
export const UNSEEN_FILE_TOKENS = 50_000;

/**
 * Tokens of one picture. `source` is a data URI (its size is read from the head, its base64 is
 * never tokenised) or any other address, whose size is unknown: then the rule's maximum.
 */
export function imageTokens(family: ModelFamily, source: string, detail: unknown): number {
  const rule = family.image;
  const comma = source.startsWith('data:') ? source.indexOf(',') : -1;
  return ruleTokens(rule, comma === -1 ? undefined : imageSize(source, comma + 1), detail);
}

/** The same for a bare base64 body without a `data:` head (Anthropic's shape). */
export function base64ImageTokens(family: ModelFamily, base64: string): number {
  return ruleTokens(family.image, imageSize(base64, 0), undefined);
}

function ruleTokens(rule: ImageRule, size: ImageSize | undefined, detail: unknown): number {
  switch (rule.kind) {
    case 'tiles':
      return tileTokens(rule.base, rule.perTile, size, detail);
    case 'patches':
      return Math.ceil(patches(size, detail) * rule.multiplier);
    case 'area': {
      if (!size) return rule.tokensMax;
      return Math.min(
        rule.tokensMax,
        Math.ceil((size.width * size.height) / rule.pixelsPerToken) + 2,
      );
    }
    case 'crops':
      return rule.perCrop * (size ? Math.min(crops(size), rule.cropsMax) : rule.cropsMax);
  }
}

/**
 * OpenAI, "Calculating costs": `low` is the base alone; else fit into 2048 × 2048, bring the
 * short side down to 768, and pay per 512-pixel tile. `auto` is taken as `high`.
 */
function tileTokens(
  base: number,
  perTile: number,
  size: ImageSize | undefined,
  detail: unknown,
): number {
  if (detail === 'low') return base;
  if (!size) return base + perTile * TILES_MAX;
  const fit = Math.min(1, 2048 / Math.max(size.width, size.height));
  const shrink = Math.min(1, 768 / (Math.min(size.width, size.height) * fit));
  // Rounded to whole pixels, as 768.0000001 would be two tiles.
  const edgeTiles = (pixels: number) =>
    Math.max(1, Math.ceil(Math.round(pixels * fit * shrink) / 512));
  return base + perTile * Math.min(TILES_MAX, edgeTiles(size.width) * edgeTiles(size.height));
}

/** `low` has no cheaper price on these models, so every detail pays the patches of the picture. */
function patches(size: ImageSize | undefined, detail: unknown): number {
  const most = detail === 'original' ? PATCHES_ORIGINAL_MAX : PATCHES_MAX;
  if (!size) return most;
  return Math.min(most, Math.ceil(size.width / 32) * Math.ceil(size.height / 32));
}

/** Google: pictures up to 384 pixels are one crop; others are cut at a third more than half. */
function crops({ width, height }: ImageSize): number {
  if (width <= 384 && height <= 384) return 1;
  const edge = Math.min(768, Math.max(256, Math.floor(Math.min(width, height) / 1.5)));
  return Math.ceil(width / edge) * Math.ceil(height / edge);
}

/**
 * Tokens of base64 audio by its duration: exact for PCM in WAV (its header names the byte rate),
 * else from a low bit rate, which errs high.
 */
export function audioTokens(family: ModelFamily, base64: string): number {
  const head = Buffer.from(base64.slice(0, 64), 'base64');
  const isWav = head.length >= 32 && head.toString('latin1', 0, 4) === 'RIFF';
  const declared = isWav ? head.readUInt32LE(28) : 0;
  // A forged rate must not make long audio free: PCM never exceeds 192 kHz × 2 × 32 bit.
  const bytesPerSecond =
    declared >= 1_000 && declared <= 1_536_000 ? declared : COMPRESSED_AUDIO_BYTES_PER_SECOND;
  return Math.ceil((base64Bytes(base64) / bytesPerSecond) * family.audioTokensPerSecond);
}

/** Tokens of a base64 document by the pages that its size allows. */
export function documentTokens(family: ModelFamily, base64: string): number {
  const pages = Math.min(PAGES_MAX, Math.max(1, Math.ceil(base64Bytes(base64) / PAGE_BYTES)));
  return pages * (PAGE_TEXT_TOKENS + ruleTokens(family.image, undefined, 'high'));
}

function base64Bytes(base64: string): number {
  return Math.ceil((base64.length * 3) / 4);
}
