import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { limit } from '../testing/documents.js';
import { GatewayHarness } from '../testing/gateway-harness.js';

const docsUrl = 'https://docs.example.com/errors';
let harness: GatewayHarness;
beforeAll(async () => {
  harness = await GatewayHarness.start({ DOCS_URL: docsUrl });
});
afterAll(() => harness?.close());

describe('a refused caller', () => {
  it('is told in the language that it asks for, with the same code and a link', async () => {
    const world = await harness.publish({ limits: { user: [limit('requests', 'hour', '1')] } });
    expect((await harness.chat(world)).status).toBe(200);
    // The first refusal comes from the store, the second from this gateway's memory, before the body is read.
    for (const { language, says } of [
      { language: 'zh-CN,zh;q=0.9,en;q=0.5', says: '用户“Ada”已达到限额 每小时 1 次请求' },
      { language: 'zh', says: '用户“Ada”已达到限额 每小时 1 次请求' },
      { language: 'en', says: 'The user "Ada" has reached its limit of 1 requests per hour' },
      { language: 'fr', says: 'The user "Ada" has reached its limit of 1 requests per hour' },
    ]) {
      const answer = await harness.chat(world, {}, { headers: { 'accept-language': language } });
      expect(answer.status).toBe(429);
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(await answer.json()).toMatchObject({
        error: { code: 'rate_limit_exceeded', message: expect.stringContaining(says) },
        weir: { level: 'user', metric: 'requests', doc: `${docsUrl}#rate_limit_exceeded` },
      });
    }
  });

  it('finds the link in the errors of every route', async () => {
    const answer = await fetch(`${harness.url}/v1/models`);
    expect(answer.status).toBe(401);
    expect(await answer.json()).toMatchObject({ weir: { doc: `${docsUrl}#invalid_api_key` } });
  });
});
