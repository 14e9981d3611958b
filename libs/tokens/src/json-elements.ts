const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_ARRAY = 0x5b;
const OPEN_OBJECT = 0x7b;

/**
 * Whether a JSON text holds more values than `elementsMax`, seen before it is parsed: 5 MB of
 * `{"k1":1,...}` block the event loop for hundreds of milliseconds in JSON.parse, while 5 MB of
 * one string take a few. Long strings are skipped at native speed; stops at the bound. Counts
 * commas, brackets and braces outside of strings; does not check that the JSON is well-formed.
 * @param json the body as it came (UTF-8)
 */
export function hasMoreElements(json: Uint8Array, elementsMax: number): boolean {
  let elements = 0;
  let at = 0;
  while (at < json.length) {
    const byte = json[at]!;
    if (byte === QUOTE) {
      at = stringEnd(json, at + 1);
      continue;
    }
    if (byte === COMMA || byte === OPEN_ARRAY || byte === OPEN_OBJECT) {
      if (++elements > elementsMax) return true;
    }
    at++;
  }
  return false;
}

/** Index after the closing quote of the string whose content begins at `start`. */
function stringEnd(json: Uint8Array, start: number): number {
  for (let from = start; ;) {
    const quote = json.indexOf(QUOTE, from);
    if (quote === -1) return json.length;
    let escapes = 0;
    while (quote - 1 - escapes >= start && json[quote - 1 - escapes] === BACKSLASH) escapes++;
    if (escapes % 2 === 0) return quote + 1;
    from = quote + 1;
  }
}

/** UTF-16 units of a parsed JSON value's text, about; with its own stack, for any depth. */
export function jsonChars(value: unknown): number {
  let chars = 0;
  const pending: unknown[] = [value];
  while (pending.length > 0) {
    const next = pending.pop();
    chars += 2;
    if (typeof next === 'string') chars += next.length;
    else if (Array.isArray(next)) for (const item of next) pending.push(item);
    else if (typeof next === 'object' && next !== null) {
      for (const [key, item] of Object.entries(next)) {
        chars += key.length + 3;
        pending.push(item);
      }
    } else chars += String(next).length;
  }
  return chars;
}
