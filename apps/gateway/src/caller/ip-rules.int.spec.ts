import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { World } from '../testing/documents.js';
import { GatewayHarness, until } from '../testing/gateway-harness.js';

let direct: GatewayHarness;
/** Behind one proxy, known by the number of hops or by its address. */
let behindProxy: GatewayHarness[];
beforeAll(async () => {
  direct = await GatewayHarness.start();
  behindProxy = await Promise.all([
    GatewayHarness.start({ TRUST_PROXY: 1 }),
    GatewayHarness.start({ TRUST_PROXY: ['10.0.0.0/8', '127.0.0.1'] }),
  ]);
});
afterAll(async () => {
  for (const harness of [direct, ...(behindProxy ?? [])]) await harness?.close();
});

const from = (address: string) => ({ headers: { 'x-forwarded-for': address } });

describe('the address rules of an enterprise', () => {
  it('refuse a denied address with 403 before the body is read, and record it', async () => {
    const world = await direct.publish({
      settings: { ipRules: { allow: ['127.0.0.1'], deny: ['127.0.0.0/8'] } },
    });
    // A body that would be refused itself, were it read.
    const answer = await direct.chat(world, { messages: 'not a list' });
    expect(answer.status).toBe(403);
    expect(await answer.json()).toMatchObject({
      error: {
        code: 'ip_not_allowed',
        type: 'invalid_request_error',
        message: expect.stringContaining('127.0.0.1'),
      },
    });
    const refusals = await until(async () => {
      const seen = await direct.refusals(world);
      return seen.length > 0 && seen;
    }, 'the refusal to be recorded');
    expect(refusals).toMatchObject([{ code: 'ip_not_allowed', outcome: 'refused' }]);
    expect(await direct.events(world)).toEqual([]);
  });

  it("refuse in Anthropic's shape on its routes", async () => {
    const world = await direct.publish({
      settings: { ipRules: { allow: ['192.0.2.1'], deny: [] } },
    });
    for (const path of ['/v1/messages', '/v1/messages/count_tokens']) {
      const answer = await direct.post(path, world, {});
      expect(answer.status).toBe(403);
      expect(await answer.json()).toMatchObject({
        type: 'error',
        error: { type: 'permission_error', code: 'ip_not_allowed' },
      });
    }
  });

  it('hold for what a key may look up too', async () => {
    const world = await direct.publish({
      settings: { ipRules: { allow: ['192.0.2.1'], deny: [] } },
    });
    for (const path of ['/v1/models', '/v1/quota', '/v1/usage']) {
      const answer = await fetch(direct.url + path, {
        headers: { authorization: `Bearer ${world.secret}` },
      });
      expect(answer.status).toBe(403);
    }
  });

  it('let an allowed address call', async () => {
    const world = await direct.publish({
      settings: { ipRules: { allow: ['127.0.0.0/8'], deny: ['192.0.2.1'] } },
    });
    expect((await direct.chat(world)).status).toBe(200);
  });

  it('do not believe x-forwarded-for unless TRUST_PROXY says so', async () => {
    const settings = { ipRules: { allow: ['192.0.2.1'], deny: [] } };
    const forged = await direct.publish({ settings });
    expect((await direct.chat(forged, {}, from('192.0.2.1'))).status).toBe(403);
    for (const harness of behindProxy) {
      const world = await harness.publish({ settings });
      const statusFrom = async (forwarded: string) =>
        (await harness.chat(world, {}, from(forwarded))).status;
      expect(await statusFrom('192.0.2.1')).toBe(200);
      expect(await statusFrom('::ffff:192.0.2.1')).toBe(200);
      expect(await statusFrom('192.0.2.2')).toBe(403);
      expect(await statusFrom('nonsense')).toBe(403);
    }
  });

  it('go by the address that the proxy added, whatever the caller put before it', async () => {
    for (const harness of behindProxy) {
      const allowed = await harness.publish({
        settings: { ipRules: { allow: ['192.0.2.1'], deny: [] } },
      });
      const denied = await harness.publish({
        settings: { ipRules: { allow: [], deny: ['192.0.2.2'] } },
      });
      const statusOf = async (world: World, forwarded: string) =>
        (await harness.chat(world, {}, from(forwarded))).status;
      expect(await statusOf(allowed, '192.0.2.1, 192.0.2.2')).toBe(403);
      expect(await statusOf(allowed, '192.0.2.1, 127.0.0.2, 192.0.2.2')).toBe(403);
      expect(await statusOf(denied, '192.0.2.1, 192.0.2.2')).toBe(403);
      expect(await statusOf(allowed, '198.51.100.9, 192.0.2.1')).toBe(200);
    }
  });
});
