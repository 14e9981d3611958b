import { EventEmitter, once } from 'node:events';
import { Agent, get } from 'node:http';
import { connect } from 'node:net';
import {
  Body,
  Controller,
  Get,
  HttpException,
  Injectable,
  Module,
  NotFoundException,
  Post,
  Res,
} from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { isId, WeirError } from '@weir/domain';
import type { FastifyReply } from 'fastify';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { createWeirApp, startWeirApp, type WeirAppOptions } from './app.js';
import { HealthChecks } from './health.js';
import { createLogger } from './logger.js';
import { Shutdown } from './shutdown.js';

const limitSchema = z.strictObject({
  name: z.string().min(2),
  amount: z.int().min(0).nullable(),
  window: z.enum(['day', 'month']),
  parts: z.array(z.object({ share: z.number() })).default([]),
  even: z
    .int()
    .refine((value) => value % 2 === 0, { error: 'must be even', params: { remedy: 'Double it.' } })
    .default(0),
});

/** Holds answers open until the test lets them go. */
@Injectable()
class Gate {
  readonly events = new EventEmitter();
}

@Controller()
class ThingsController {
  constructor(private readonly gate: Gate) {}

  @Post('limits')
  create(@Body({ schema: limitSchema }) body: z.infer<typeof limitSchema>) {
    return body;
  }
  @Get('refused')
  refused() {
    throw new WeirError('version_conflict', 'Someone was faster.', { theirs: 4 });
  }
  @Get('locked')
  locked() {
    throw new WeirError('locked_out', 'Too many tries.', { retry_after_seconds: 0.2 });
  }
  @Get('broken')
  broken() {
    throw new Error('connect ECONNREFUSED 10.0.0.7:5432');
  }
  @Get('bad-gateway')
  badGateway() {
    throw new HttpException('upstream 10.0.0.7 said no', 502);
  }
  @Get('missing')
  missing() {
    throw new NotFoundException('There is no such department.');
  }
  @Get('raw')
  raw(@Res() reply: FastifyReply) {
    reply.hijack();
    reply.raw.writeHead(200, { 'content-type': 'text/plain' });
    reply.raw.end('raw');
  }
  @Get('slow')
  async slow() {
    this.gate.events.emit('entered');
    await once(this.gate.events, 'open');
    return { slow: true };
  }
}

@Module({ controllers: [ThingsController], providers: [Gate] })
class ThingsModule {}

const opened: NestFastifyApplication[] = [];
afterEach(async () => {
  for (const app of opened.splice(0)) await app.close();
});

function capture() {
  const lines: Record<string, unknown>[] = [];
  const events = new EventEmitter();
  const destination = {
    write: (text: string) => {
      const line = JSON.parse(text) as Record<string, unknown>;
      lines.push(line);
      events.emit(String(line['msg']), line);
    },
  };
  return { lines, events, logger: createLogger({ name: 'test', level: 'debug', destination }) };
}

async function open(options: Partial<WeirAppOptions> = {}) {
  const { lines, logger, events } = capture();
  const app = await createWeirApp(ThingsModule, { name: 'test', logger, ...options });
  opened.push(app);
  await app.listen(0, '127.0.0.1');
  return { app, lines, events, url: await app.getUrl() };
}

async function call(url: string, init?: RequestInit) {
  const answer = await fetch(url, init);
  const text = await answer.text();
  const body = (text.startsWith('{') ? JSON.parse(text) : {}) as {
    error?: Record<string, unknown>;
  };
  return { status: answer.status, headers: answer.headers, text, body, error: body.error ?? {} };
}

const postJson = (body: unknown): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: typeof body === 'string' ? body : JSON.stringify(body),
});

describe('errors', () => {
  it('answers a WeirError with its code, message, details and the request id', async () => {
    const { url } = await open();
    const answer = await call(`${url}/refused`, { headers: { 'x-request-id': 'mine-1' } });
    expect(answer.status).toBe(412);
    expect(answer.body).toEqual({
      error: {
        code: 'version_conflict',
        message: 'Someone was faster.',
        details: { theirs: 4 },
        requestId: 'mine-1',
      },
    });
  });

  it('tells a caller nothing about an unknown error but logs it under the request id', async () => {
    const { url, lines } = await open();
    for (const path of ['broken', 'bad-gateway']) {
      const answer = await call(`${url}/${path}`);
      expect(answer.status).toBe(500);
      expect(answer.text).not.toContain('10.0.0.7');
      expect(answer.error['code']).toBe('internal');
      const line = lines.find((entry) => entry['request_id'] === answer.error['requestId']);
      expect(JSON.stringify(line)).toContain('10.0.0.7');
    }
  });

  it('keeps the status and message of a 4xx of Nest and Fastify', async () => {
    const { url } = await open({ bodyLimitBytes: 100 });
    expect(await call(`${url}/missing`)).toMatchObject({
      status: 404,
      error: { code: 'not_found', message: 'There is no such department.' },
    });
    expect(await call(`${url}/nowhere`)).toMatchObject({
      status: 404,
      error: { code: 'not_found' },
    });
    expect(await call(`${url}/limits`, postJson('{"name":'))).toMatchObject({
      status: 400,
      error: { code: 'invalid_request' },
    });
    expect(await call(`${url}/limits`, postJson({ name: 'x'.repeat(200) }))).toMatchObject({
      status: 413,
      error: { code: 'body_too_large' },
    });
    const xml = { method: 'POST', headers: { 'content-type': 'application/xml' }, body: '<a/>' };
    expect(await call(`${url}/limits`, xml)).toMatchObject({
      status: 415,
      error: { code: 'unsupported_media_type' },
    });
  });

  it('turns retry_after_seconds into a whole retry-after of at least one second', async () => {
    const { url } = await open();
    const answer = await call(`${url}/locked`);
    expect(answer.status).toBe(429);
    expect(answer.headers.get('retry-after')).toBe('1');
  });

  it('lets an app give its errors another shape', async () => {
    const { url } = await open({
      renderError: (error, requestId) => ({ oops: error.code, requestId }),
    });
    const answer = await call(`${url}/refused`, { headers: { 'x-request-id': 'r1' } });
    expect(answer.body).toEqual({ oops: 'version_conflict', requestId: 'r1' });
  });
});

describe('validation', () => {
  it('lists every field with message and remedy', async () => {
    const { url } = await open();
    const answer = await call(
      `${url}/limits`,
      postJson({
        name: 'a',
        amount: -1,
        window: 'year',
        parts: [{ share: 'x' }],
        even: 3,
        extra: 1,
      }),
    );
    expect(answer.status).toBe(422);
    expect(answer.error['code']).toBe('validation_failed');
    expect((answer.error['details'] as { fields: unknown }).fields).toEqual([
      { path: 'name', message: expect.any(String), remedy: 'Use at least 2.' },
      { path: 'amount', message: expect.any(String), remedy: 'Use at least 0.' },
      { path: 'window', message: expect.any(String), remedy: 'Use one of: day, month.' },
      {
        path: 'parts.0.share',
        message: expect.any(String),
        remedy: 'Send a value of type number.',
      },
      { path: 'even', message: 'must be even', remedy: 'Double it.' },
      { path: '', message: expect.stringContaining('extra'), remedy: 'Remove: extra.' },
    ]);
  });

  it('gives the handler what the schema made of the body', async () => {
    const { url } = await open();
    const answer = await call(
      `${url}/limits`,
      postJson({ name: 'ab', amount: null, window: 'day' }),
    );
    expect(answer.status).toBe(201);
    expect(answer.body).toEqual({ name: 'ab', amount: null, window: 'day', parts: [], even: 0 });
  });

  it('bounds the list of faults', async () => {
    const { url } = await open();
    const parts = Array.from({ length: 80 }, () => ({ share: 'x' }));
    const answer = await call(
      `${url}/limits`,
      postJson({ name: 'ab', amount: 1, window: 'day', parts }),
    );
    const details = answer.error['details'] as { fields: unknown[]; omitted: number };
    expect(details.fields).toHaveLength(50);
    expect(details.omitted).toBe(30);
  });
});

describe('request ids', () => {
  it('are on every answer: good, refused, unknown route, hijacked, malformed url', async () => {
    const { url } = await open();
    for (const path of ['healthz', 'refused', 'nowhere', 'raw', '%E0%A4%A']) {
      const answer = await call(`${url}/${path}`, {
        headers: { 'x-request-id': `id-of.${path.length}` },
      });
      expect(answer.headers.get('x-request-id')).toBe(`id-of.${path.length}`);
    }
    expect(isId((await call(`${url}/healthz`)).headers.get('x-request-id') ?? '')).toBe(true);
    const hostile = await call(`${url}/healthz`, { headers: { 'x-request-id': 'a b' } });
    expect(isId(hostile.headers.get('x-request-id') ?? '')).toBe(true);
  });

  it('are even on the answer to bytes that are no request, and to headers that are too large', async () => {
    const { url } = await open({ headerLimitBytes: 2_048 });
    const broken = await sendRaw(url, 'HELLO\r\n\r\n');
    expect(broken).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(broken).toMatch(/\r\nx-request-id: [0-9a-f-]{36}\r\n/);
    expect(broken).toContain('"code":"invalid_request"');
    const large = await sendRaw(
      url,
      `GET / HTTP/1.1\r\nhost: x\r\nx-large: ${'x'.repeat(4_000)}\r\n\r\n`,
    );
    expect(large).toMatch(/^HTTP\/1\.1 431 /);
    expect(large).toContain('"code":"headers_too_large"');
  });
});

describe('health and metrics', () => {
  it('serves health and readiness with the reasons', async () => {
    const { app, url } = await open();
    expect(await call(`${url}/healthz`)).toMatchObject({ status: 200, body: { status: 'ok' } });
    app.get(HealthChecks).register('limits', () => ({ degraded: 'limits are not shared' }));
    expect(await call(`${url}/readyz`)).toMatchObject({
      status: 200,
      body: { status: 'degraded', reasons: ['limits: limits are not shared'] },
    });
    app.get(HealthChecks).register('postgres', () => Promise.reject(new Error('down')));
    expect(await call(`${url}/readyz`)).toMatchObject({
      status: 503,
      body: { status: 'not_ready' },
    });
  });

  it('times requests by the pattern of their route, so that callers cannot create series', async () => {
    const { url } = await open();
    await call(`${url}/nowhere/1`);
    await call(`${url}/nowhere/2`);
    await call(`${url}/refused`);
    const { text } = await call(`${url}/metrics`);
    expect(text).toContain(
      'http_request_duration_seconds_count{app="test",method="GET",route="/refused",status="412"} 1',
    );
    expect(text).toContain('_count{app="test",method="GET",route="(none)",status="404"} 2');
    expect(text).not.toContain('nowhere');
  });

  it('shows metrics only to the bearer of the token, where there is one', async () => {
    const { url } = await open({ metricsToken: 'a-token-of-metrics' });
    expect((await call(`${url}/metrics`)).status).toBe(401);
    const wrong = { headers: { authorization: 'Bearer a-token-of-metricz' } };
    expect((await call(`${url}/metrics`, wrong)).status).toBe(401);
    const right = { headers: { authorization: 'Bearer a-token-of-metrics' } };
    expect((await call(`${url}/metrics`, right)).status).toBe(200);
  });
});

describe('the end of an app', () => {
  it('lets requests in flight finish before it drains and disconnects', async () => {
    const { app, url } = await open();
    const gate = app.get(Gate);
    const order: string[] = [];
    for (const phase of ['disconnect', 'drain', 'stop-intake'] as const) {
      app.get(Shutdown).onClose(phase, phase, () => {
        order.push(phase);
        if (phase === 'stop-intake') gate.events.emit('stopped');
      });
    }
    const entered = once(gate.events, 'entered');
    const answer = call(`${url}/slow`).then((result) => {
      order.push('answered');
      return result;
    });
    await entered;
    const stopped = once(gate.events, 'stopped');
    const closed = app.close();
    await stopped;
    expect(await app.get(HealthChecks).readiness()).toMatchObject({ status: 'draining' });
    gate.events.emit('open');
    expect(await answer).toMatchObject({ status: 200, body: { slow: true } });
    await closed;
    expect(order.filter((step) => step !== 'answered')).toEqual([
      'stop-intake',
      'drain',
      'disconnect',
    ]);
    expect(order).toContain('answered');
    expect(order.indexOf('answered')).toBeGreaterThan(order.indexOf('stop-intake'));
  });

  it('does not wait for a connection that is kept alive after its last answer', async () => {
    const { app, url } = await open({ shutdownGraceMs: 60_000 });
    const gate = app.get(Gate);
    const agent = new Agent({ keepAlive: true });
    const entered = once(gate.events, 'entered');
    const answered = new Promise<void>((resolve, reject) => {
      get(`${url}/slow`, { agent }, (answer) => answer.resume().on('end', resolve)).on(
        'error',
        reject,
      );
    });
    await entered;
    const closed = app.close();
    const server = app.getHttpServer();
    await vi.waitUntil(() => !server.listening, { interval: 1 });
    gate.events.emit('open');
    await answered;
    await closed;
    agent.destroy();
  });

  it('cuts requests that outlast the grace time', async () => {
    const { app, url, lines } = await open({ shutdownGraceMs: 30 });
    const gate = app.get(Gate);
    const entered = once(gate.events, 'entered');
    const outcome = call(`${url}/slow`).then(
      () => 'answered',
      () => 'cut',
    );
    await entered;
    await app.close();
    expect(await outcome).toBe('cut');
    expect(lines.map((line) => line['msg'])).toContain(
      'requests still in flight after the grace time are cut',
    );
    gate.events.emit('open');
  });
});

describe('startWeirApp', () => {
  class FakeProcess extends EventEmitter {
    readonly exited = new Promise<number>((resolve) => this.on('exit-code', resolve));
    exit(code: number): void {
      this.emit('exit-code', code);
    }
  }

  async function start(options: Partial<WeirAppOptions> = {}) {
    const captured = capture();
    const host = new FakeProcess();
    const app = await startWeirApp(
      ThingsModule,
      { name: 'test', logger: captured.logger, ...options },
      host,
    );
    opened.push(app);
    const listening = captured.lines.find((line) => line['msg'] === 'listening');
    return { ...captured, host, app, url: String(listening?.['url']) };
  }

  it('says where it listens', async () => {
    const { url } = await start();
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect((await call(`${url}/healthz`)).status).toBe(200);
    expect((await call(`${url}/metrics`)).text).toContain('nodejs_eventloop_lag');
  });

  it('closes on SIGTERM and ends with 0', async () => {
    const { host, url, app } = await start();
    let disconnected = false;
    app.get(Shutdown).onClose('disconnect', 'pool', () => void (disconnected = true));
    host.emit('SIGTERM');
    expect(await host.exited).toBe(0);
    expect(disconnected).toBe(true);
    await expect(fetch(url)).rejects.toThrow();
  });

  it('goes on serving for a while, draining, so that a load balancer can turn away first', async () => {
    const { host, url } = await start({ drainDelayMs: 500 });
    host.emit('SIGTERM');
    expect(await call(`${url}/readyz`)).toMatchObject({
      status: 503,
      body: { status: 'draining' },
    });
    expect((await call(`${url}/healthz`)).status).toBe(200);
    expect(await host.exited).toBe(0);
  });

  it('ends at once on a second signal', async () => {
    const { host, url, app } = await start();
    const gate = app.get(Gate);
    const entered = once(gate.events, 'entered');
    const answer = call(`${url}/slow`);
    await entered;
    host.emit('SIGINT');
    host.emit('SIGINT');
    expect(await host.exited).toBe(1);
    gate.events.emit('open');
    await answer;
  });

  it('logs a fault that nobody caught, closes and ends with 1', async () => {
    for (const event of ['unhandledRejection', 'uncaughtException']) {
      const { host, lines } = await start();
      host.emit(event, new Error('nobody caught me'));
      expect(await host.exited).toBe(1);
      expect(lines.find((line) => line['level'] === 'fatal')).toMatchObject({
        err: { message: 'nobody caught me' },
      });
    }
  });
});

function sendRaw(url: string, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(bytes));
    socket.on('data', (chunk) => (text += chunk.toString()));
    socket.on('close', () => resolve(text));
    socket.on('error', reject);
  });
}
