import { Controller, Get, Module, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { createWeirApp } from './app.js';
import { ConfigError, loadConfig, serverConfigShape } from './config.js';
import { createLogger } from './logger.js';
import { z } from 'zod';

const load = (value: string) =>
  loadConfig(z.object(serverConfigShape), { TRUST_PROXY: value }).TRUST_PROXY;

describe('TRUST_PROXY', () => {
  it.each([
    ['', false],
    ['false', false],
    ['0', false],
    ['1', 1],
    [' 2 ', 2],
    ['10.0.0.0/8', ['10.0.0.0/8']],
    ['10.0.0.7, 2001:db8::/32,::1', ['10.0.0.7', '2001:db8::/32', '::1']],
  ])('takes %j', (value, wanted) => {
    expect(load(value)).toEqual(wanted);
  });

  it.each(['true', 'TRUE', 'yes', 'on'])('refuses %s, with what to write instead', (value) => {
    expect(() => load(value)).toThrow(ConfigError);
    expect(() => load(value)).toThrow(
      /TRUST_PROXY: would believe every caller.*number of proxies.*such as 1, or their addresses.*10\.0\.0\.0\/8/,
    );
  });

  it.each([
    '11',
    '-1',
    '1.5',
    'nginx',
    '10.0.0.0/33',
    '::1/129',
    '0.0.0.0/0',
    '::/0',
    '10.0.0.7,',
    '10.0.0.7 10.0.0.8',
    '10.0.0.0/8/8',
    '1,10.0.0.7',
  ])('refuses %j', (value) => {
    expect(() => load(value)).toThrow(/TRUST_PROXY: must be the number of proxies/);
  });
});

@Controller()
class WhoController {
  @Get('who')
  who(@Req() request: FastifyRequest) {
    return { ip: request.ip, protocol: request.protocol };
  }
}

@Module({ controllers: [WhoController] })
class WhoModule {}

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const app of opened.splice(0)) await app.close();
});

/** Who a request is taken to come from, by an app that trusts these. */
async function whoIs(
  trusted: string,
  request: { peer: string; forwarded?: string; protocol?: string },
): Promise<{ ip: string; protocol: string }> {
  const logger = createLogger({ name: 'test', level: 'silent' });
  const app = await createWeirApp(WhoModule, { name: 'test', logger, trustProxy: load(trusted) });
  opened.push(app);
  const { peer, forwarded, protocol } = request;
  const answer = await app.inject({
    url: '/who',
    remoteAddress: peer,
    headers: {
      ...(forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }),
      ...(protocol === undefined ? {} : { 'x-forwarded-proto': protocol }),
    },
  });
  return answer.json();
}

describe('the caller of a request', () => {
  const peer = '10.0.0.1';

  it('is the peer where no proxy is trusted, whatever the headers claim', async () => {
    const forged = { peer, forwarded: '203.0.113.7', protocol: 'https' };
    expect(await whoIs('', forged)).toEqual({ ip: peer, protocol: 'http' });
  });

  it.each(['1', '10.0.0.1', '10.0.0.0/8'])(
    'is what the one proxy (%s) has added, not what the caller has put before it',
    async (trusted) => {
      expect(await whoIs(trusted, { peer })).toMatchObject({ ip: peer });
      expect(await whoIs(trusted, { peer, forwarded: '203.0.113.7', protocol: 'https' })).toEqual({
        ip: '203.0.113.7',
        protocol: 'https',
      });
      expect(await whoIs(trusted, { peer, forwarded: '192.0.2.1, 203.0.113.7' })).toMatchObject({
        ip: '203.0.113.7',
      });
    },
  );

  it.each(['2', '10.0.0.0/8'])('is found behind two proxies (%s)', async (trusted) => {
    const forwarded = '192.0.2.1, 203.0.113.7, 10.0.0.2';
    expect(await whoIs(trusted, { peer, forwarded })).toMatchObject({ ip: '203.0.113.7' });
  });

  it('is the peer where that is not one of the proxies that are named', async () => {
    const forged = { peer: '198.51.100.9', forwarded: '203.0.113.7', protocol: 'https' };
    expect(await whoIs('10.0.0.0/8', forged)).toEqual({ ip: '198.51.100.9', protocol: 'http' });
  });
});
