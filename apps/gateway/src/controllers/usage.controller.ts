import { Controller, Get, Inject, Req, Res, UseGuards } from '@nestjs/common';
import { WeirError } from '@weir/domain';
import type { FastifyReply } from 'fastify';
import { request as send } from 'undici';
import type { GatewayConfig } from '../config.js';
import { GATEWAY_CONFIG } from '../injection-tokens.js';
import { ApiKeyGuard, type AuthenticatedRequest } from './api-key.guard.js';

const answerMs = 10_000;
const answerBytesMax = 8 * 1024 * 1024;

/**
 * GET /v1/usage: the key's own use. The books are the admin API's, so the request goes on to its `/internal/v1/key-usage` with
 * the key that came; this app has no database to look into.
 */
@Controller('v1/usage')
@UseGuards(ApiKeyGuard)
export class UsageController {
  constructor(@Inject(GATEWAY_CONFIG) private readonly config: GatewayConfig) {}

  @Get()
  async show(@Req() request: AuthenticatedRequest, @Res() reply: FastifyReply): Promise<void> {
    const base = this.config.ADMIN_API_URL;
    if (base === undefined) {
      throw new WeirError('unavailable', 'Usage reports are not set up here (ADMIN_API_URL).');
    }
    const url = new URL('/internal/v1/key-usage', base);
    url.search = new URL(request.url, 'http://gateway').search;
    const { authorization, 'x-api-key': apiKey } = request.headers;
    const key = authorization ?? (typeof apiKey === 'string' ? `Bearer ${apiKey}` : '');
    let answer;
    let body: string;
    try {
      answer = await send(url, {
        headers: { authorization: key, 'x-request-id': request.id },
        headersTimeout: answerMs,
        bodyTimeout: answerMs,
      });
      const declared = Number(answer.headers['content-length'] ?? 0);
      if (declared > answerBytesMax) throw new Error(`the report has ${declared} bytes`);
      body = await answer.body.text();
    } catch (error) {
      throw new WeirError(
        'unavailable',
        'The usage report cannot be read at the moment. Try again later.',
        {},
        { cause: error },
      );
    }
    await reply
      .code(answer.statusCode)
      .header('cache-control', 'private, no-store')
      .type(String(answer.headers['content-type'] ?? 'application/json; charset=utf-8'))
      .send(body);
  }
}
