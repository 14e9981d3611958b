import o200kSource from 'js-tiktoken/ranks/o200k_base';
import { expect, it } from 'vitest';
import { buildRankTable, rankOf } from './rank-table.js';

const noPause = () => Promise.resolve();

it('finds every token of the rank file at its rank', async () => {
  const table = await buildRankTable('o200k_base', o200kSource, noPause);
  const tokens = o200kSource.bpe_ranks.split(' ').slice(2);
  expect(tokens.length).toBe(199_998);
  const wrong = tokens.filter((token, rank) => {
    const bytes = Buffer.from(token, 'base64');
    return rankOf(table, bytes, 0, bytes.length) !== rank;
  });
  expect(wrong).toEqual([]);
});

it('says that other bytes are no token', async () => {
  const table = await buildRankTable('o200k_base', o200kSource, noPause);
  for (const text of ['weirweirweir', '\u0000\u0001\u0002\u0003', 'x'.repeat(500)]) {
    const bytes = Buffer.from(text);
    expect(rankOf(table, bytes, 0, bytes.length)).toBe(-1);
  }
});

it('refuses a rank file whose ranks are not contiguous', async () => {
  const source = { pat_str: '.', bpe_ranks: '! 0 IQ== Ig==\n! 5 Iw==' };
  await expect(buildRankTable('o200k_base', source, noPause)).rejects.toThrow(
    'Rank file of o200k_base is not contiguous at rank 2',
  );
});

it('gives other work a turn while it loads', async () => {
  let pauses = 0;
  await buildRankTable('o200k_base', o200kSource, async () => void pauses++);
  expect(pauses).toBeGreaterThan(20);
});
