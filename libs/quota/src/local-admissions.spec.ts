import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newId } from '@weir/domain';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EventSpool } from './event-spool.js';
import { type LocalAdmission, LocalAdmissions } from './local-admissions.js';
import { draftOf, noon, tenant } from './testbed/quota-testbed.js';

function admissionOf(): LocalAdmission {
  const who = tenant();
  const { enterpriseId, shard } = who;
  const times = { reservedAtMs: noon, expiresAtMs: noon + 60_000, periodId: '2026-11' };
  return {
    lease: { id: newId(), shard, enterpriseId, ...times },
    draft: draftOf(who),
    inputTokens: 12,
    descriptor: Buffer.from([0, 1, 255]),
  };
}

describe('the journal of calls admitted without Redis', () => {
  let directory: string;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'weir-admissions-'));
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  const load = async (): Promise<LocalAdmissions> =>
    LocalAdmissions.load(await EventSpool.open({ directory }));

  it('finds after a crash what had begun and not ended, whole', async () => {
    const admissions = await load();
    const [first, second, third] = [admissionOf(), admissionOf(), admissionOf()];
    await Promise.all([first, second, third].map((each) => admissions.begin(each)));
    await admissions.end(second.lease.id);
    await admissions.close();
    const again = await load();
    expect(again.list()).toEqual([first, third]);
    expect(again.get(second.lease.id)).toBeUndefined();
    await again.close();
  });

  it('leaves no file behind when the last call has ended, whoever began it', async () => {
    const admissions = await load();
    const [first, second] = [admissionOf(), admissionOf()];
    await admissions.begin(first);
    await admissions.close();
    const again = await load();
    await again.begin(second);
    await again.end(first.lease.id);
    expect(await readdir(directory)).not.toEqual([]);
    await again.end(second.lease.id);
    expect(await readdir(directory)).toEqual([]);
    await again.close();
  });

  it('keeps a call that begins while the files of those that ended are being deleted', async () => {
    const admissions = await load();
    for (let round = 0; round < 20; round += 1) {
      const [ending, beginning] = [admissionOf(), admissionOf()];
      await admissions.begin(ending);
      await Promise.all([admissions.end(ending.lease.id), admissions.begin(beginning)]);
      await admissions.close();
      const again = await load();
      expect(again.list()).toEqual([beginning]);
      await again.close();
      await admissions.end(beginning.lease.id);
    }
    await admissions.close();
  });

  it('ends a call once, and knows nothing of a stranger', async () => {
    const admissions = await load();
    await admissions.end(newId());
    expect(await readdir(directory)).toEqual([]);
    await admissions.close();
  });

  it('does not take a call as begun that the disk refused', async () => {
    const admissions = await LocalAdmissions.load(
      await EventSpool.open({ directory, maxBytes: 1 }),
    );
    await admissions.begin(admissionOf());
    expect(admissions.isFull).toBe(true);
    const refused = admissionOf();
    await expect(admissions.begin(refused)).rejects.toMatchObject({ code: 'quota_unavailable' });
    expect(admissions.get(refused.lease.id)).toBeUndefined();
    await admissions.close();
  });
});
