import { monitorEventLoopDelay } from 'node:perf_hooks';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTokenCounter, type TokenCounter } from './token-counter.js';

const DELAY_P99_MS_MAX = 20;
const ROUNDS = 6;

let counter: TokenCounter;
beforeAll(async () => {
  counter = createTokenCounter();
  await counter.warmUp();
});
afterAll(() => counter.close());

const chinese = (chars: number) =>
  String.fromCharCode(...Array.from({ length: chars }, (_, i) => 0x4e00 + ((i * 7_919) % 20_000)));
const user = (content: unknown) => ({ messages: [{ role: 'user', content }] });
const hostile: Record<string, { messages: readonly unknown[] }> = {
  '5,400 Chinese characters without punctuation, inline': user(chinese(5_400)),
  '10,000 Chinese characters without punctuation': user(chinese(10_000)),
  '100,000 × "a"': user('a'.repeat(100_000)),
  '16,000 × "a", inline': user('a'.repeat(16_000)),
  '100,000 spaces': user(' '.repeat(100_000)),
  '100,000 newlines': user('\n'.repeat(100_000)),
  '100,000 emoji': user('😀'.repeat(100_000)),
  '100,000 Thai characters': user('สวัสดีครับผม'.repeat(8_400)),
  '1 MB of "a"': user('a'.repeat(1_000_000)),
  '5 MB of base64 as a picture': user([
    {
      type: 'image_url',
      image_url: { url: `data:image/png;base64,${'iVBORw0KGgo'.repeat(450_000)}` },
    },
  ]),
  '5 MB of base64 as text': user('iVBORw0KGgoAAAANSUhEUgAAB/+x9'.repeat(175_000)),
  '5 MB of Chinese': user(chinese(10_000).repeat(170)),
  '1 MB of special tokens': user('<|endoftext|>'.repeat(75_000)),
  '100,000 messages': {
    messages: Array.from({ length: 100_000 }, () => ({ role: 'user', content: 'x' })),
  },
  '100,000 parts': user(Array.from({ length: 100_000 }, () => ({ type: 'text', text: 'x' }))),
};

it.each(Object.entries(hostile))(
  'a timer goes on beside %s: event-loop delay p99 < 20 ms',
  async (_, body) => {
    const delay = monitorEventLoopDelay({ resolution: 1 });
    // The loop has other work, as a gateway's has; each turn is a sample.
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    delay.enable();
    for (let round = 0; round < ROUNDS; round++) {
      const count = await counter.countChat('gpt-4o', body, 6_000_000);
      expect(count.tokens).toBeGreaterThan(0);
      await new Promise((resolve) => setTimeout(resolve));
    }
    delay.disable();
    clearInterval(timer);
    expect(turns).toBeGreaterThan(0);
    expect(delay.percentile(99) / 1e6).toBeLessThan(DELAY_P99_MS_MAX);
  },
);
