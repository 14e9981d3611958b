import { newId } from '@weir/domain';
import { createTestDatabase, type TestDatabase } from '@weir/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from './database.js';

let testDatabase: TestDatabase;
let database: Database;
const enterpriseId = newId();
const modelId = newId();

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase({ url: testDatabase.url, poolMax: 2 });
  await database.prisma.enterprise.create({
    data: { id: enterpriseId, name: 'Acme', timeZone: 'UTC', currency: 'USD', settings: {} },
  });
  await database.prisma.model.create({
    data: { id: modelId, enterpriseId, alias: 'm', contextWindowTokens: 1, maxOutputTokens: 1 },
  });
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});

const price = (from: string, to: string | null, of = modelId) =>
  database.prisma.modelPriceVersion.create({
    data: {
      id: newId(),
      modelId: of,
      currency: 'USD',
      validFrom: new Date(from),
      validTo: to === null ? null : new Date(to),
      picoPerToken: {},
    },
  });

const limit = (overrides: { amount?: bigint | null; mode?: string; scopeLevel?: string } = {}) =>
  database.prisma.quotaLimit.create({
    data: {
      id: newId(),
      enterpriseId,
      scopeLevel: 'enterprise',
      scopeId: enterpriseId,
      metric: 'cost',
      window: 'month',
      amount: 5n,
      ...overrides,
    },
  });

describe('the database itself', () => {
  it('lets the price ranges of one model meet but not overlap', async () => {
    await price('2026-01-01T00:00:00Z', '2026-06-01T00:00:00Z');
    await price('2026-06-01T00:00:00Z', null);
    await expect(price('2026-05-31T23:59:59.999Z', '2026-06-01T00:00:00Z')).rejects.toThrow(
      /no_overlap/,
    );
    await expect(price('2030-01-01T00:00:00Z', null)).rejects.toThrow(/no_overlap/);
    await expect(price('2020-01-02T00:00:00Z', '2020-01-01T00:00:00Z')).rejects.toThrow(/range/);
    const other = await database.prisma.model.create({
      data: { id: newId(), enterpriseId, alias: 'n', contextWindowTokens: 1, maxOutputTokens: 1 },
    });
    await price('2026-01-01T00:00:00Z', null, other.id);
  });

  it('holds one limit per scope, metric, window and model, and tells no limit from one of 0', async () => {
    const unlimited = await limit({ amount: null });
    await expect(limit()).rejects.toThrow(/unique/i);
    await database.prisma.quotaLimit.delete({ where: { id: unlimited.id } });
    const blocked = await limit({ amount: 0n });
    expect(blocked.amount).toBe(0n);
    await database.prisma.quotaLimit.delete({ where: { id: blocked.id } });
    await expect(limit({ amount: -1n })).rejects.toThrow(/amount/);
    await expect(limit({ mode: 'maybe' })).rejects.toThrow(/mode/);
    await expect(limit({ scopeLevel: 'galaxy' })).rejects.toThrow(/scope_level/);
  });

  it('has no department above itself', async () => {
    const id = newId();
    await expect(
      database.prisma.department.create({ data: { id, enterpriseId, name: 'Loop', parentId: id } }),
    ).rejects.toThrow(/parent/);
  });
});
