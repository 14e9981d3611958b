import { describe, expect, it } from 'vitest';
import { imageSize } from './image-size.js';
import { audioTokens, base64ImageTokens, documentTokens, imageTokens } from './media.js';
import { modelFamily } from './model-families.js';

function png(width: number, height: number): string {
  const head = Buffer.alloc(33);
  head.writeUInt32BE(0x89504e47, 0);
  head.writeUInt32BE(0x0d0a1a0a, 4);
  head.writeUInt32BE(13, 8);
  head.write('IHDR', 12, 'latin1');
  head.writeUInt32BE(width, 16);
  head.writeUInt32BE(height, 20);
  return head.toString('base64');
}

function pngUri(width: number, height: number): string {
  return `data:image/png;base64,${png(width, height)}`;
}

function jpeg(width: number, height: number, metadata: number): string {
  const segment = Buffer.alloc(2 + metadata);
  segment.writeUInt16BE(0xffe1, 0);
  segment.writeUInt16BE(metadata, 2);
  const frame = Buffer.alloc(19);
  frame.writeUInt16BE(0xffc2, 0);
  frame.writeUInt16BE(17, 2);
  frame.writeUInt16BE(height, 5);
  frame.writeUInt16BE(width, 7);
  return Buffer.concat([Buffer.from([0xff, 0xd8]), segment, frame]).toString('base64');
}

function webp(kind: 'VP8X' | 'VP8L' | 'VP8 ', width: number, height: number): string {
  const head = Buffer.alloc(32);
  head.write('RIFF', 0, 'latin1');
  head.write(`WEBP${kind}`, 8, 'latin1');
  if (kind === 'VP8X') {
    head.writeUIntLE(width - 1, 24, 3);
    head.writeUIntLE(height - 1, 27, 3);
  } else if (kind === 'VP8L') {
    head.writeUInt8(0x2f, 20);
    head.writeUInt32LE(((width - 1) | ((height - 1) << 14)) >>> 0, 21);
  } else {
    head.writeUInt16LE(width, 26);
    head.writeUInt16LE(height, 28);
  }
  return head.toString('base64');
}

describe('the size of a picture', () => {
  it.each([
    ['PNG', png(800, 600)],
    ['JPEG', jpeg(800, 600, 2_000)],
    ['JPEG with a thumbnail before the frame', jpeg(800, 600, 60_000)],
    ['WebP, extended', webp('VP8X', 800, 600)],
    ['WebP, lossless', webp('VP8L', 800, 600)],
    ['WebP, lossy', webp('VP8 ', 800, 600)],
    // A real one-pixel GIF with its logical screen set to 800 × 600.
    ['GIF', Buffer.from('474946383961200358020000', 'hex').toString('base64')],
  ])('is read from the head of a %s', (_, base64) => {
    expect(imageSize(base64, 0)).toEqual({ width: 800, height: 600 });
  });

  it.each([
    ['', 0],
    ['AAAA', 0],
    ['not base64 at all!', 0],
    [Buffer.from([0xff, 0xd8, 0xff]).toString('base64'), 0],
    [
      Buffer.from([0xff, 0xd8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).toString('base64'),
      0,
    ],
    // A segment of length 0 must not loop for ever.
    [Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 0, 0xff, 0xe0, 0, 0, 0, 0, 0]).toString('base64'), 0],
    [png(0, 100), 0],
  ])('is unknown for %j', (base64, start) => {
    expect(imageSize(base64, start)).toBeUndefined();
  });
});

describe('image tokens', () => {
  // The examples of OpenAI's "Calculating costs" page.
  it.each([
    ['gpt-4o', 1024, 1024, 'high', 765],
    ['gpt-4o', 2048, 4096, 'high', 1105],
    ['gpt-4o', 4096, 8192, 'low', 85],
    ['gpt-4o', 1024, 1024, undefined, 765],
    ['gpt-4o', 1024, 1024, 'auto', 765],
    ['gpt-4o', 512, 512, 'high', 255],
    ['gpt-4o-mini', 512, 512, 'low', 2833],
    ['gpt-4o-mini', 512, 512, 'high', 8500],
    ['gpt-5', 1024, 1024, 'high', 630],
    ['o3', 1024, 1024, 'high', 675],
    // 32 × 32 patches: 1,024 of them, times the multiplier.
    ['gpt-4.1-mini', 1024, 1024, 'high', 1659],
    ['gpt-4.1-nano', 1024, 1024, 'low', 2520],
    ['o4-mini', 8000, 8000, 'high', 2642],
    ['gpt-4o', 20000, 100, 'high', 765],
  ])('%s, %d × %d, detail %s: %d', (model, width, height, detail, tokens) => {
    expect(imageTokens(modelFamily(model), pngUri(width, height), detail)).toBe(tokens);
  });

  it('takes the most a picture can cost when its size is unknown', () => {
    for (const model of [
      'gpt-4o',
      'gpt-4o-mini',
      'gpt-5-nano',
      'gemini-2.5-pro',
      'claude-opus-4-1',
      'other',
    ]) {
      const family = modelFamily(model);
      const unknown = imageTokens(family, 'https://weir.example/a.png', undefined);
      for (const [width, height] of [
        [100, 100],
        [1024, 1024],
        [2048, 768],
        [4000, 3000],
        [9000, 9000],
      ] as const) {
        expect(
          imageTokens(family, pngUri(width, height), 'high'),
          `${model} ${width}`,
        ).toBeLessThanOrEqual(unknown);
      }
      expect(unknown).toBeGreaterThan(1_000);
    }
  });

  it("follows Anthropic's area rule", () => {
    // 1092 × 1092 is about 1,590 tokens by Anthropic's table.
    expect(base64ImageTokens(modelFamily('claude-sonnet-4-5'), png(1092, 1092))).toBe(1592);
  });

  it("follows Gemini's crops: 960 × 540 are six crops of 360 pixels", () => {
    expect(imageTokens(modelFamily('gemini-2.0-flash'), pngUri(960, 540), undefined)).toBe(6 * 258);
    expect(imageTokens(modelFamily('gemini-2.0-flash'), pngUri(384, 384), undefined)).toBe(258);
  });
});

describe('audio and documents', () => {
  it('counts PCM by the byte rate of its header: 2 s of 24 kHz are 20 tokens', () => {
    const wav = Buffer.alloc(44 + 96_000);
    wav.write('RIFF', 0, 'latin1');
    wav.write('WAVEfmt ', 8, 'latin1');
    wav.writeUInt32LE(48_000, 28);
    const tokens = audioTokens(modelFamily('gpt-4o-audio-preview'), wav.toString('base64'));
    expect(tokens).toBeGreaterThanOrEqual(20);
    expect(tokens).toBeLessThanOrEqual(21);
  });

  it('does not let a forged byte rate make audio free', () => {
    const wav = Buffer.alloc(100_000);
    wav.write('RIFF', 0, 'latin1');
    wav.writeUInt32LE(0xffffffff, 28);
    const forged = audioTokens(modelFamily('gpt-4o'), wav.toString('base64'));
    expect(forged).toBe(
      audioTokens(modelFamily('gpt-4o'), Buffer.alloc(100_000).toString('base64')),
    );
  });

  it('errs high for compressed audio: a minute at 64 kbit/s is at least 600 tokens', () => {
    const minute = Buffer.alloc((64_000 / 8) * 60).toString('base64');
    expect(audioTokens(modelFamily('gpt-4o'), minute)).toBeGreaterThanOrEqual(600);
  });

  it('counts a document by the pages its size allows, at most 600', () => {
    const family = modelFamily('claude-sonnet-4-5');
    const pageTokens = documentTokens(family, Buffer.alloc(1_000).toString('base64'));
    expect(pageTokens).toBeGreaterThanOrEqual(3_000 + 1_600);
    expect(documentTokens(family, Buffer.alloc(200_000).toString('base64'))).toBeGreaterThanOrEqual(
      10 * pageTokens,
    );
    expect(documentTokens(family, 'A'.repeat(50_000_000))).toBe(600 * pageTokens);
  });
});
