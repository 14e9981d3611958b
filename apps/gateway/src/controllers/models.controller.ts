import { Controller, Get, Header, Param, Req, UseGuards } from '@nestjs/common';
import { instantOfId, isId, WeirError, type ModelDocument } from '@weir/domain';
import { mayUse } from '../caller/caller.js';
import { ApiKeyGuard, type AuthenticatedRequest } from './api-key.guard.js';

type ModelView = {
  id: string;
  object: 'model';
  created: number;
  owned_by: string;
  kind: ModelDocument['kind'];
  dialect: ModelDocument['dialect'];
  context_window: number;
  max_output_tokens: number;
};

/** GET /v1/models: what this key may use, in OpenAI's shape with the model's limits besides. */
@Controller('v1/models')
@UseGuards(ApiKeyGuard)
export class ModelsController {
  @Get()
  @Header('cache-control', 'private, no-store')
  list(@Req() { caller }: AuthenticatedRequest): { object: 'list'; data: ModelView[] } {
    const models = [...caller.policy.models.values()].filter((model) =>
      mayUse(caller.policy, model),
    );
    return { object: 'list', data: models.map(viewOf) };
  }

  /** A wildcard, because names such as `openai/gpt-4o` have a slash in them. */
  @Get('*')
  @Header('cache-control', 'private, no-store')
  one(@Req() { caller }: AuthenticatedRequest, @Param('*') wanted: string): ModelView {
    const model = caller.policy.models.get(wanted);
    if (model === undefined || !mayUse(caller.policy, model)) {
      throw new WeirError(
        'model_not_found',
        `The model "${wanted.slice(0, 128)}" does not exist here. GET /v1/models lists those you may use.`,
        { param: 'model' },
      );
    }
    return viewOf(model);
  }
}

function viewOf(model: ModelDocument): ModelView {
  // The first price's id is a UUIDv7: when the model was first priced is when it came to be here.
  const firstPrice = model.prices[0]?.id ?? '';
  const created =
    isId(firstPrice) && firstPrice[14] === '7' ? Math.floor(instantOfId(firstPrice) / 1_000) : 0;
  return {
    id: model.alias,
    object: 'model',
    created,
    owned_by: 'weir',
    kind: model.kind,
    dialect: model.dialect,
    context_window: model.contextWindowTokens,
    max_output_tokens: model.maxOutputTokens,
  };
}
