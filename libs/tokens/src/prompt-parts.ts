import {
  audioTokens,
  base64ImageTokens,
  documentTokens,
  imageTokens,
  UNSEEN_FILE_TOKENS,
} from './media.js';
import type { ModelFamily } from './model-families.js';

/** OpenAI chat request body, already shape-validated; unknown parts are tolerated. */
export interface ChatBody {
  readonly messages: readonly unknown[];
  readonly tools?: unknown;
  readonly functions?: unknown;
  readonly response_format?: unknown;
}

/** Anthropic messages request body. */
export interface MessagesBody {
  readonly messages: readonly unknown[];
  readonly system?: unknown;
  readonly tools?: unknown;
}

/** OpenAI Responses request body. */
export interface ResponsesBody {
  readonly input?: unknown;
  readonly instructions?: unknown;
  readonly tools?: unknown;
  readonly text?: unknown;
}

/** What a request asks a model to read: texts to tokenise, and tokens known by formula. */
export interface PromptParts {
  readonly texts: string[];
  /** Tokens of structure and media. */
  fixedTokens: number;
  /** True once a part counts by a formula that is not the vendor's exact one. */
  approximate: boolean;
  /** Elements seen so far; the walk stops at {@link ELEMENTS_MAX}. */
  elements: number;
}

/**
 * More messages, parts, properties than any real request has: reading them all would block the
 * event loop. The caller then bounds the prompt by the body's size.
 */
const ELEMENTS_MAX = 10_000;

/** Whether the body had more elements than were read: `texts` and `fixedTokens` lack the rest. */
export function isTruncated(parts: PromptParts): boolean {
  return parts.elements > ELEMENTS_MAX;
}

type Json = Record<string, unknown>;

/** Deeper schemas than this count as their JSON text: no recursion without a bound. */
const SCHEMA_DEPTH_MAX = 24;
/** The brackets and separators around a tool call and its result; not documented, errs high. */
const TOOL_CALL_TOKENS = 8;

export function chatParts(family: ModelFamily, body: ChatBody): PromptParts {
  const parts = emptyParts(family);
  for (const message of bounded(parts, body.messages)) addMessage(parts, family, message);
  addTools(parts, family, body.tools);
  addTools(parts, family, body.functions);
  addStructure(parts, body.response_format);
  return parts;
}

export function messagesParts(family: ModelFamily, body: MessagesBody): PromptParts {
  const parts = emptyParts(family);
  if (body.system !== undefined) {
    parts.fixedTokens += family.perMessage;
    addContent(parts, family, body.system);
  }
  for (const message of bounded(parts, body.messages)) addMessage(parts, family, message);
  addTools(parts, family, body.tools);
  return parts;
}

/**
 * Responses API. What `previous_response_id` or a stored prompt adds is known to the upstream
 * alone: the caller reserves a floor for those.
 */
export function responsesParts(family: ModelFamily, body: ResponsesBody): PromptParts {
  const parts = emptyParts(family);
  if (typeof body.instructions === 'string') {
    addMessage(parts, family, { role: 'system', content: body.instructions });
  }
  if (typeof body.input === 'string') {
    addMessage(parts, family, { role: 'user', content: body.input });
  } else if (Array.isArray(body.input)) {
    for (const item of bounded(parts, body.input)) addMessage(parts, family, item);
  }
  addTools(parts, family, body.tools);
  addStructure(parts, asObject(body.text)?.['format']);
  return parts;
}

function emptyParts(family: ModelFamily): PromptParts {
  return {
    texts: [],
    fixedTokens: family.priming,
    approximate: family.factor !== 1,
    elements: 0,
  };
}

/** The elements of a list, up to the bound of the whole walk. */
function* bounded<Element>(parts: PromptParts, list: readonly Element[]): Generator<Element> {
  for (const element of list) {
    if (++parts.elements > ELEMENTS_MAX) return;
    yield element;
  }
}

/** Like Object.entries, without building what is beyond the bound. */
function* boundedEntries(parts: PromptParts, fields: Json): Generator<[string, unknown]> {
  for (const key in fields) {
    if (++parts.elements > ELEMENTS_MAX) return;
    yield [key, fields[key]];
  }
}

/** One message of any dialect, or a Responses item (function call, its output, reasoning). */
function addMessage(parts: PromptParts, family: ModelFamily, message: unknown): void {
  parts.fixedTokens += family.perMessage;
  const fields = asObject(message);
  if (!fields) return addUnknown(parts, message);
  for (const [key, value] of boundedEntries(parts, fields)) {
    switch (key) {
      case 'role':
      case 'refusal':
      case 'reasoning_content':
      case 'arguments':
        addText(parts, value);
        break;
      case 'name':
        parts.fixedTokens += family.perName;
        addText(parts, value);
        break;
      case 'content':
      case 'output':
      case 'summary':
        addContent(parts, family, value);
        break;
      case 'tool_calls':
        for (const call of bounded(parts, asArray(value))) {
          addToolCall(parts, asObject(call)?.['function'] ?? call);
        }
        break;
      case 'function_call':
        addToolCall(parts, value);
        break;
      case 'audio':
        // A former answer, known by id alone; at most as long as its transcript allows.
        parts.approximate = true;
        break;
      // Bookkeeping that the model does not read.
      case 'type':
      case 'id':
      case 'status':
      case 'call_id':
      case 'tool_call_id':
      case 'encrypted_content':
      case 'cache_control':
      case 'phase':
        break;
      default:
        addUnknown(parts, value);
    }
  }
  if (fields['type'] === 'function_call' || fields['type'] === 'function_call_output') {
    parts.fixedTokens += TOOL_CALL_TOKENS;
    parts.approximate = true;
  }
}

function addToolCall(parts: PromptParts, call: unknown): void {
  parts.fixedTokens += TOOL_CALL_TOKENS;
  parts.approximate = true;
  const fields = asObject(call);
  if (!fields) return addUnknown(parts, call);
  addText(parts, fields['name']);
  addText(parts, fields['arguments']);
  if (fields['input'] !== undefined) addUnknown(parts, fields['input']);
}

function addContent(parts: PromptParts, family: ModelFamily, content: unknown, depth = 0): void {
  if (content === null || content === undefined) return;
  if (typeof content === 'string') return addText(parts, content);
  if (!Array.isArray(content) || depth > SCHEMA_DEPTH_MAX) return addUnknown(parts, content);
  for (const part of bounded(parts, content)) {
    if (typeof part === 'string') addText(parts, part);
    else addContentPart(parts, family, asObject(part) ?? { value: part }, depth);
  }
}

function addContentPart(parts: PromptParts, family: ModelFamily, part: Json, depth: number): void {
  switch (part['type']) {
    case 'text':
    case 'input_text':
    case 'output_text':
    case 'summary_text':
      return addText(parts, part['text']);
    case 'refusal':
      return addText(parts, part['refusal']);
    case 'thinking':
      return addText(parts, part['thinking']);
    case 'redacted_thinking':
      // Encrypted, of unknown length in tokens: a token per four characters errs high.
      return addFixed(parts, Math.ceil(asString(part['data']).length / 4));
    case 'image_url':
    case 'input_image': {
      const image = asObject(part['image_url']);
      const source = asString(image ? image['url'] : part['image_url']);
      return addFixed(parts, imageTokens(family, source, image?.['detail'] ?? part['detail']));
    }
    case 'image':
    case 'document':
      return addSource(parts, family, part, depth);
    case 'input_audio': {
      const audio = asObject(part['input_audio']) ?? part;
      return addFixed(parts, audioTokens(family, asString(audio['data'])));
    }
    case 'file':
    case 'input_file': {
      const file = asObject(part['file']) ?? part;
      addText(parts, file['filename']);
      return addFile(parts, family, file['file_data']);
    }
    case 'tool_use':
    case 'server_tool_use':
      return addToolCall(parts, part);
    case 'tool_result':
      addFixed(parts, TOOL_CALL_TOKENS);
      return addContent(parts, family, part['content'], depth + 1);
    default:
      return addUnknown(parts, part);
  }
}

/** Anthropic's `source`: base64, url, file, text, or content blocks. */
function addSource(parts: PromptParts, family: ModelFamily, part: Json, depth: number): void {
  const source = asObject(part['source']) ?? {};
  const isImage = part['type'] === 'image';
  addText(parts, part['title']);
  addText(parts, part['context']);
  switch (source['type']) {
    case 'text':
      return addText(parts, source['data']);
    case 'content':
      return addContent(parts, family, source['content'], depth + 1);
    case 'base64': {
      const data = asString(source['data']);
      return addFixed(
        parts,
        isImage ? base64ImageTokens(family, data) : documentTokens(family, data),
      );
    }
    default:
      return addFixed(parts, isImage ? imageTokens(family, '', undefined) : UNSEEN_FILE_TOKENS);
  }
}

function addFile(parts: PromptParts, family: ModelFamily, data: unknown): void {
  if (typeof data !== 'string' || data === '') return addFixed(parts, UNSEEN_FILE_TOKENS);
  const comma = data.startsWith('data:') ? data.indexOf(',') + 1 : 0;
  addFixed(parts, documentTokens(family, data.slice(comma)));
}

/**
 * Tools of all three dialects: `{ function: { name, description, parameters } }`, the same flat,
 * and `{ name, description, input_schema }`. The vendor's hosted tools count as their JSON.
 */
function addTools(parts: PromptParts, family: ModelFamily, tools: unknown): void {
  const list = asArray(tools);
  if (list.length === 0) return;
  const rule = family.tools;
  addFixed(parts, rule.once);
  for (const tool of bounded(parts, list)) {
    const outer = asObject(tool);
    const fields = asObject(outer?.['function']) ?? outer;
    if (!fields || typeof fields['name'] !== 'string') {
      addUnknown(parts, tool);
      continue;
    }
    parts.fixedTokens += rule.perFunction;
    parts.texts.push(`${fields['name']}:${undotted(fields['description'])}`);
    addSchema(parts, family, fields['parameters'] ?? fields['input_schema'], 0);
  }
}

function addSchema(parts: PromptParts, family: ModelFamily, schema: unknown, depth: number): void {
  const fields = asObject(schema);
  if (!fields) return;
  if (depth > SCHEMA_DEPTH_MAX) return addUnknown(parts, schema);
  const rule = family.tools;
  const properties = asObject(fields['properties']);
  if (properties) {
    parts.fixedTokens += rule.perObject;
    for (const [key, value] of boundedEntries(parts, properties)) {
      const property = asObject(value) ?? {};
      parts.fixedTokens += rule.perProperty;
      const type = property['type'];
      parts.texts.push(`${key}:${asJson(parts, type ?? '')}:${undotted(property['description'])}`);
      addSchema(parts, family, property, depth + 1);
    }
  }
  for (const [key, value] of boundedEntries(parts, fields)) {
    switch (key) {
      case 'properties':
      case 'type':
      case 'description':
      case 'required':
      case 'additionalProperties':
      case '$schema':
        break;
      case 'enum':
        parts.fixedTokens += rule.perEnum;
        for (const item of bounded(parts, asArray(value))) {
          parts.fixedTokens += rule.perEnumItem;
          parts.texts.push(asJson(parts, item));
        }
        break;
      case 'items':
        addSchema(parts, family, value, depth + 1);
        break;
      default:
        parts.texts.push(key);
        addUnknown(parts, value);
    }
  }
}

/** A JSON schema for the answer is shown to the model as text; plain modes add nothing. */
function addStructure(parts: PromptParts, format: unknown): void {
  const fields = asObject(format);
  if (fields?.['type'] === 'json_schema') addUnknown(parts, fields['json_schema'] ?? fields);
}

function addText(parts: PromptParts, value: unknown): void {
  if (typeof value === 'string') {
    if (value !== '') parts.texts.push(value);
  } else if (value !== undefined && value !== null) addUnknown(parts, value);
}

/** What we do not know may be read by the model: its JSON counts, and the sum is an estimate. */
function addUnknown(parts: PromptParts, value: unknown): void {
  if (value === null || value === undefined) return;
  parts.approximate = true;
  parts.texts.push(asJson(parts, value));
}

/** Strings as they are. JSON.parse reads deeper nesting than JSON.stringify writes: see isTruncated. */
function asJson(parts: PromptParts, value: unknown): string {
  if (typeof value === 'string') return value;
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    parts.elements = ELEMENTS_MAX + 1;
    return '';
  }
}

function addFixed(parts: PromptParts, tokens: number): void {
  parts.fixedTokens += tokens;
  parts.approximate = true;
}

/** The Cookbook's formula counts a description without its full stop. */
function undotted(description: unknown): string {
  return asString(description).replace(/\.$/, '');
}

function asObject(value: unknown): Json | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Json)
    : undefined;
}

function asArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function asString(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
