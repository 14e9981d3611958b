import { describe, expect, it } from 'vitest';
import { loadEncoding } from './encodings.js';
import { createOutputCounter } from './output-counter.js';

const PROSE = `The weir holds back the river, and it doesn't only hold: it measures — every litre that
passes is written down once. "How much?" asked the clerk; "42,137.50 per day," said the keeper.\n\n`;
const CHINESE =
  '水坝拦住河水，并且计量流量：每一升都只记一次。“多少？”职员问。每天四万二千立方米！';
const CODE =
  'function settle(lease: Lease) {\n  if (!lease.open) return;\n    counters[lease.scope] -= 1;\n}\n';
const texts = {
  prose: PROSE.repeat(60),
  chinese: CHINESE.repeat(120),
  code: CODE.repeat(100),
  'chinese without punctuation': CHINESE.replace(/\P{Script=Han}/gu, '').repeat(150),
  emoji: '👩‍👩‍👧‍👦 yes 🇩🇪! '.repeat(400),
  thai: 'เขื่อนกั้นแม่น้ำและวัดการไหล '.repeat(200),
  'one long word': 'antidisestablishmentarianism'.repeat(300),
  'spaces and newlines': ' \n  \n\n'.repeat(1_500),
  combining: 'e\u0301a\u0308'.repeat(1_500),
};

async function countInDeltas(text: string, size: number): Promise<number> {
  const { encoder } = await loadEncoding('o200k_base');
  const counter = createOutputCounter(
    () => encoder,
    1,
    () => 0.5,
  );
  for (let i = 0; i < text.length; i += size) counter.push(text.slice(i, i + size));
  return counter.finish();
}

describe.each(Object.entries(texts))('an answer of %s', (_, text) => {
  it('counts the same within 0.5 % in deltas of 1, 7, 20 and 5,000 characters', async () => {
    const { encoder } = await loadEncoding('o200k_base');
    const exact = encoder.count(text);
    const counts = await Promise.all([1, 7, 20, 5_000].map((size) => countInDeltas(text, size)));
    for (const count of counts) {
      expect(Math.abs(count - exact) / exact, `${counts} of ${exact}`).toBeLessThanOrEqual(0.005);
    }
    // The cut is a matter of the text alone.
    expect(new Set(counts).size).toBe(1);
  });
});

it('cuts prose, Chinese and code at edges that change nothing at all', async () => {
  const { encoder } = await loadEncoding('o200k_base');
  for (const name of ['prose', 'chinese', 'code'] as const) {
    expect(await countInDeltas(texts[name], 7), name).toBe(encoder.count(texts[name]));
  }
});

it('would be far off if each delta were counted alone: what the buffers are for', async () => {
  const { encoder } = await loadEncoding('o200k_base');
  let alone = 0;
  for (let i = 0; i < texts.prose.length; i += 7)
    alone += encoder.count(texts.prose.slice(i, i + 7));
  expect(alone / encoder.count(texts.prose)).toBeGreaterThan(1.3);
});

it('reports tokens on the way that never fall below what was delivered', async () => {
  const { encoder } = await loadEncoding('o200k_base');
  const counter = createOutputCounter(
    () => encoder,
    1,
    () => 0.5,
  );
  let delivered = '';
  for (let i = 0; i < PROSE.length * 10; i += 11) {
    const delta = PROSE.repeat(10).slice(i, i + 11);
    delivered += delta;
    counter.push(delta);
    expect(counter.tokens()).toBeGreaterThanOrEqual(encoder.count(delivered) - 1);
  }
  expect(counter.finish()).toBe(encoder.count(delivered));
});

it('gives the same total when finished twice, and 0 for no text', async () => {
  const { encoder } = await loadEncoding('o200k_base');
  const counter = createOutputCounter(
    () => encoder,
    1,
    () => 0.5,
  );
  expect(counter.finish()).toBe(0);
  counter.push('hello world');
  expect([counter.finish(), counter.finish(), counter.tokens()]).toEqual([2, 2, 2]);
});

it('scales by the factor of another vendor once, not per segment', async () => {
  const { encoder } = await loadEncoding('o200k_base');
  const counter = createOutputCounter(
    () => encoder,
    1.5,
    () => 0.5,
  );
  counter.push(texts.prose.slice(0, 4_000));
  counter.push(texts.prose.slice(4_000));
  expect(counter.finish()).toBe(Math.ceil(encoder.count(texts.prose) * 1.5));
});

it('errs high for prose while the ranks are not loaded', async () => {
  const { encoder } = await loadEncoding('o200k_base');
  for (const name of ['prose', 'chinese', 'code', 'thai', 'emoji'] as const) {
    const counter = createOutputCounter(
      () => undefined,
      1,
      () => 0.5,
    );
    counter.push(texts[name]);
    expect(counter.finish(), name).toBeGreaterThanOrEqual(encoder.count(texts[name]));
  }
});

it('samples a delta of megabytes, erring high by less than a third', async () => {
  const { encoder } = await loadEncoding('o200k_base');
  const counter = createOutputCounter(
    () => encoder,
    1,
    () => 0.5,
  );
  const huge = PROSE.repeat(5_000);
  counter.push(huge);
  const exact = encoder.count(huge);
  expect(counter.finish()).toBeGreaterThanOrEqual(exact);
  expect(counter.finish()).toBeLessThan(exact * 1.33);
});
