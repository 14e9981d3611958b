import { Body, Controller, Header, HttpCode, Inject, Post, Req, UseGuards } from '@nestjs/common';
import type { TokenCounter } from '@weir/tokens';
import { modelFor } from '../caller/caller.js';
import { TOKEN_COUNTER } from '../injection-tokens.js';
import { invalidField, requiredMessages, requiredModel } from '../request/fields.js';
import { isJsonObject, type JsonObject } from '../request/json-body.js';
import { messages } from '../routes/messages.js';
import { ApiKeyGuard, type AuthenticatedRequest } from './api-key.guard.js';

/**
 * POST /v1/messages/count_tokens (Anthropic API reference, "Count tokens in a Message"). Counted here, as a reservation
 * is: no upstream is asked, so it costs nothing, and for models whose tokenizer is not public it errs high.
 */
@Controller('v1/messages/count_tokens')
@UseGuards(ApiKeyGuard)
export class CountTokensController {
  constructor(@Inject(TOKEN_COUNTER) private readonly counter: TokenCounter) {}

  @Post()
  @HttpCode(200)
  @Header('cache-control', 'private, no-store')
  async count(
    @Req() { caller }: AuthenticatedRequest,
    @Body() body: unknown,
  ): Promise<{ input_tokens: number }> {
    if (!isJsonObject(body)) throw invalidField('body', 'The request body must be a JSON object.');
    const model = modelFor(caller.policy, requiredModel(body), messages);
    requiredMessages(body);
    const upstreamModel = model.routes[0]?.upstreamModel ?? model.alias;
    const { tokens } = await this.counter.countMessages(
      upstreamModel,
      body as JsonObject & { messages: readonly unknown[] },
    );
    return { input_tokens: tokens };
  }
}
