import { WeirError } from '@weir/domain';
import { isJsonObject, type JsonObject } from './json-body.js';

/** A fault of the request's body. `param` is the path of the field, as in OpenAI's errors. */
export function invalidField(param: string, message: string): WeirError {
  return new WeirError('invalid_request', message, { param });
}

function shown(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean' || value === null)
    return String(value);
  if (typeof value === 'string') return `the text ${JSON.stringify(value.slice(0, 40))}`;
  return Array.isArray(value) ? 'an array' : 'an object';
}

/** A whole number in [min, max]; null and absent are null. @throws WeirError `invalid_request` */
export function optionalInteger(
  body: JsonObject,
  param: string,
  range: { min: number; max: number },
): number | null {
  const value = body[param];
  if (value === undefined || value === null) return null;
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) {
    throw invalidField(
      param,
      `"${param}" is ${shown(value)}. Give a whole number from ${range.min} to ${range.max}, or leave it out.`,
    );
  }
  if (value < range.min || value > range.max) {
    throw invalidField(
      param,
      `"${param}" is ${value}. It must be from ${range.min} to ${range.max}; leave it out for the default.`,
    );
  }
  return value;
}

/** true or false; null and absent are false. @throws WeirError `invalid_request` */
export function optionalBoolean(body: JsonObject, param: string): boolean {
  const value = body[param];
  if (value === undefined || value === null) return false;
  if (typeof value !== 'boolean') {
    throw invalidField(
      param,
      `"${param}" is ${shown(value)}. Give true or false, or leave it out.`,
    );
  }
  return value;
}

/** An object; null and absent are null. @throws WeirError `invalid_request` */
export function optionalObject(body: JsonObject, param: string): JsonObject | null {
  const value = body[param];
  if (value === undefined || value === null) return null;
  if (!isJsonObject(value)) {
    throw invalidField(param, `"${param}" is ${shown(value)}. Give an object, or leave it out.`);
  }
  return value;
}

/** An array; null and absent are null. @throws WeirError `invalid_request` */
export function optionalArray(body: JsonObject, param: string): readonly unknown[] | null {
  const value = body[param];
  if (value === undefined || value === null) return null;
  if (!Array.isArray(value)) {
    throw invalidField(param, `"${param}" is ${shown(value)}. Give an array, or leave it out.`);
  }
  return value as readonly unknown[];
}

/** Service tiers that cost no more than the price list says, which knows none. OpenAI's and Anthropic's names. */
const pricedTiers: readonly unknown[] = ['auto', 'default', 'flex', 'standard_only'];

/** Refuses a call for a service tier that could cost more than is reserved and charged for it. @throws WeirError `invalid_request` */
export function requirePricedTier(body: JsonObject): void {
  const tier = body['service_tier'];
  if (tier === undefined || tier === null || pricedTiers.includes(tier)) return;
  throw invalidField(
    'service_tier',
    `"service_tier" is ${shown(tier)}. There is no price for it here; leave it out or give one of ${pricedTiers.join(', ')}.`,
  );
}

/** The model that the caller asks for. @throws WeirError `invalid_request` */
export function requiredModel(body: JsonObject): string {
  const value = body['model'];
  if (value === undefined || value === null) {
    throw invalidField(
      'model',
      'The request names no "model". GET /v1/models lists those you may use.',
    );
  }
  if (typeof value !== 'string' || value.length === 0 || value.length > 128) {
    throw invalidField(
      'model',
      `"model" is ${shown(value)}. Give a model's name of at most 128 characters.`,
    );
  }
  return value;
}

const roles = ['system', 'developer', 'user', 'assistant', 'tool', 'function'] as const;

/** Chat messages: enough of their shape that they can be counted. @throws WeirError `invalid_request` */
export function requiredMessages(body: JsonObject): readonly JsonObject[] {
  const messages = body['messages'];
  if (!Array.isArray(messages)) {
    const found = messages === undefined ? 'is missing' : `is ${shown(messages)}`;
    throw invalidField(
      'messages',
      `"messages" ${found}. Give an array such as [{"role": "user", "content": "Hello"}].`,
    );
  }
  if (messages.length === 0) {
    throw invalidField('messages', '"messages" is empty. Give at least one message.');
  }
  return messages.map((message: unknown, index) => {
    const param = `messages[${index}]`;
    if (!isJsonObject(message)) {
      throw invalidField(
        param,
        `"${param}" is ${shown(message)}. Each message is an object with "role" and "content".`,
      );
    }
    const role = message['role'];
    if (typeof role !== 'string' || !(roles as readonly string[]).includes(role)) {
      throw invalidField(
        `${param}.role`,
        `"${param}.role" is ${shown(role)}. It must be one of ${roles.join(', ')}.`,
      );
    }
    const content = message['content'];
    const isContent =
      content === undefined ||
      content === null ||
      typeof content === 'string' ||
      (Array.isArray(content) && content.every((part) => isJsonObject(part)));
    if (!isContent) {
      throw invalidField(
        `${param}.content`,
        `"${param}.content" is ${shown(content)}. It must be a text or an array of content parts.`,
      );
    }
    return message;
  });
}
