import { appendFile, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EventSpool } from './event-spool.js';

describe('the event spool', () => {
  let directory: string;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'weir-spool-'));
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  const readAll = async (spool: EventSpool): Promise<unknown[]> => {
    const values: unknown[] = [];
    await spool.drain(async (value) => {
      values.push(value);
    });
    return values;
  };

  it('gives back what was appended, in order, across a restart, and leaves no file behind', async () => {
    const spool = await EventSpool.open({ directory });
    const texts = ['a', 'line\nbreak', 'separators \u2028 \u2029 \r', '中文', '{"x":1}'];
    await Promise.all(texts.map((text) => spool.append({ text })));
    await spool.close();
    const again = await EventSpool.open({ directory });
    expect(again.pending).toBe(texts.length);
    expect(await readAll(again)).toEqual(texts.map((text) => ({ text })));
    expect(again.pending).toBe(0);
    expect(await readdir(directory)).toEqual([]);
    await again.close();
  });

  it('delivers a file again when delivery broke off in the middle, and what came meanwhile too', async () => {
    const spool = await EventSpool.open({ directory });
    for (const number of [1, 2, 3]) await spool.append(number);
    const seen: unknown[] = [];
    await expect(
      spool.drain(async (value) => {
        if (value === 2) {
          await spool.append(4);
          throw new Error('Redis went away');
        }
        seen.push(value);
      }),
    ).rejects.toThrow('went away');
    expect(seen).toEqual([1]);
    expect(spool.pending).toBe(4);
    expect(await readAll(spool)).toEqual([1, 2, 3, 4]);
    await spool.close();
  });

  it('leaves out a line that a crash cut short: nobody was told that it was kept', async () => {
    const spool = await EventSpool.open({ directory });
    await spool.append('whole');
    await spool.close();
    const [name = ''] = await readdir(directory);
    await appendFile(join(directory, name), '{"half":');
    const again = await EventSpool.open({ directory });
    expect(await readAll(again)).toEqual(['whole']);
    await again.close();
  });

  it('refuses more than it may hold, and takes more once it was delivered', async () => {
    const spool = await EventSpool.open({ directory, maxBytes: 64 });
    await spool.append('x'.repeat(60));
    expect(spool.isFull).toBe(false);
    await spool.append('y');
    expect(spool.isFull).toBe(true);
    await expect(spool.append('z')).rejects.toMatchObject({ code: 'quota_unavailable' });
    await readAll(spool);
    expect(spool.isFull).toBe(false);
    await spool.append('z');
    expect(await readAll(spool)).toEqual(['z']);
    await spool.close();
  });
});
