// The least that a proxy can be: a NestJS application on Fastify that parses a JSON body, sends it to the
// upstream over a keep-alive pool and passes the answer on. No keys, no models, no limits, no metering.

import 'reflect-metadata';
import { Controller, Module, Post, Req, Res } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Pool } from 'undici';

const upstream = new URL(process.env.UPSTREAM_URL ?? '');
const pool = new Pool(upstream.origin, { connections: 512, pipelining: 1 });
const headers = {
  'content-type': 'application/json',
  authorization: `Bearer ${process.env.UPSTREAM_KEY}`,
};

class ProxyController {
  /** @param {any} request @param {any} reply */
  async chat(request, reply) {
    const answer = await pool.request({
      method: 'POST',
      path: '/v1/chat/completions',
      headers,
      body: JSON.stringify(request.body),
    });
    const type = answer.headers['content-type'];
    if (String(type).startsWith('text/event-stream')) {
      reply.hijack();
      reply.raw.writeHead(answer.statusCode, { 'content-type': type });
      for await (const chunk of answer.body) {
        if (!reply.raw.write(chunk)) await new Promise((done) => reply.raw.once('drain', done));
      }
      reply.raw.end();
      return;
    }
    const body = Buffer.from(await answer.body.arrayBuffer());
    await reply.code(answer.statusCode).header('content-type', type).send(body);
  }
}
// Decorators as plain calls: this file is run as it is.
const descriptor = Object.getOwnPropertyDescriptor(ProxyController.prototype, 'chat');
Req()(ProxyController.prototype, 'chat', 0);
Res()(ProxyController.prototype, 'chat', 1);
Post('chat/completions')(ProxyController.prototype, 'chat', /** @type {any} */ (descriptor));
Controller('v1')(ProxyController);

class ProxyModule {}
Module({ controllers: [ProxyController] })(ProxyModule);

const app = await NestFactory.create(ProxyModule, new FastifyAdapter(), { logger: false });
await app.listen(Number(process.env.PORT), '127.0.0.1');
