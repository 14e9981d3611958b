import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { WeirError, type CallerPolicy, type Clock, type ModelDocument } from '@weir/domain';
import type { PolicyStore } from '@weir/quota';
import { languageOf, type Language } from '../answers/language.js';
import type { MeteredRoute } from '../routes/metered-route.js';
import { mayCallFrom } from './ip-rules.js';

/** Who calls, from where and in which language: the key's hash reloads the policy, which is as it was when the call came. */
export type Caller = {
  readonly keySha256: string;
  readonly policy: CallerPolicy;
  /** The address that the call came from; that of the proxy's client where TRUST_PROXY says so. */
  readonly address: string;
  readonly language: Language;
};

/** Longer ones are not hashed: no key of ours is. */
const secretCharactersMax = 512;

/** The API key of a request: `Authorization: Bearer`, or Anthropic's `x-api-key`. The secret is hashed and forgotten. */
function keySha256Of(headers: IncomingHttpHeaders): string {
  const authorization = headers.authorization;
  const bearer =
    authorization === undefined ? undefined : /^bearer +(\S+) *$/i.exec(authorization)?.[1];
  const named = headers['x-api-key'];
  const secret = bearer ?? (typeof named === 'string' ? named : undefined);
  if (secret === undefined || secret === '') {
    throw new WeirError(
      'invalid_api_key',
      'You sent no API key. Send the header "Authorization: Bearer <your key>".',
    );
  }
  if (secret.length > secretCharactersMax) throw unknownKey();
  return hash('sha256', secret, 'hex');
}

function unknownKey(): WeirError {
  return new WeirError(
    'invalid_api_key',
    'This API key is not known. Check it for typing errors, or ask your administrator for a new one.',
  );
}

/**
 * Who sends these headers. Whether they may do so from that address is for {@link requireAllowedAddress}.
 *
 * @throws WeirError `invalid_api_key` (none, unknown, disabled or expired), `quota_unavailable` when the policies cannot
 * be read and this key is not cached.
 */
export async function authenticate(
  headers: IncomingHttpHeaders,
  address: string,
  policies: PolicyStore,
  clock: Clock,
): Promise<Caller> {
  const keySha256 = keySha256Of(headers);
  const policy = await policies.resolve(keySha256);
  if (policy === null) throw unknownKey();
  requireUsable(policy, clock.now());
  return { keySha256, policy, address, language: languageOf(headers['accept-language']) };
}

/**
 * The caller with a policy that is at least as new as the one that admission asked for.
 *
 * @throws WeirError as {@link authenticate} and {@link requireAllowedAddress}: the key may have been revoked meanwhile.
 */
export async function refreshed(
  caller: Caller,
  policies: PolicyStore,
  clock: Clock,
): Promise<Caller> {
  const policy = await policies.refresh(caller.keySha256);
  if (policy === null) throw unknownKey();
  requireUsable(policy, clock.now());
  const renewed = { ...caller, policy };
  requireAllowedAddress(renewed);
  return renewed;
}

/** @throws WeirError `ip_not_allowed` where the enterprise's rules shut out the caller's address. */
export function requireAllowedAddress({ policy, address }: Caller): void {
  if (mayCallFrom(policy.enterprise.settings.ipRules, address)) return;
  throw new WeirError(
    'ip_not_allowed',
    `The API keys of "${policy.enterprise.name}" may not be used from the address ${address}. Ask your administrator to allow it.`,
  );
}

function requireUsable(policy: CallerPolicy, nowMs: number): void {
  if (!policy.active) {
    throw new WeirError(
      'invalid_api_key',
      `The API key "${policy.key.name}" is disabled, or its user or department is. Ask your administrator.`,
    );
  }
  const { expiresAt } = policy.key;
  if (expiresAt !== null && Date.parse(expiresAt) <= nowMs) {
    throw new WeirError(
      'invalid_api_key',
      `The API key "${policy.key.name}" expired at ${expiresAt}.`,
    );
  }
}

/** Whether a key may see and use a model. */
export function mayUse(policy: CallerPolicy, model: ModelDocument): boolean {
  const allowed = policy.key.allowedModels;
  return model.enabled && (allowed === null || allowed.includes(model.alias));
}

/**
 * The model that a call names.
 *
 * @throws WeirError `model_not_found`, `model_not_allowed`, or `invalid_request` where the model is for another route.
 */
export function modelFor(policy: CallerPolicy, alias: string, route: MeteredRoute): ModelDocument {
  const model = policy.models.get(alias);
  if (model === undefined || !model.enabled) {
    throw new WeirError(
      'model_not_found',
      `The model "${alias}" does not exist here. GET /v1/models lists those you may use.`,
      { param: 'model' },
    );
  }
  if (!mayUse(policy, model)) {
    throw new WeirError(
      'model_not_allowed',
      `The API key "${policy.key.name}" may not use the model "${alias}". GET /v1/models lists those it may use.`,
      { param: 'model' },
    );
  }
  if (model.kind !== route.modelKind || model.dialect !== route.dialect) {
    throw new WeirError(
      'invalid_request',
      `The model "${alias}" is a ${model.dialect} ${model.kind} model, which ${route.path} does not serve.`,
      { param: 'model' },
    );
  }
  return model;
}
