/**
 * PostgreSQL array literals, built directly: pg's own array encoding costs several times as much, and a slice has
 * some 100,000 elements.
 */

/** For elements whose text needs no quotes: numbers, UUIDs, booleans, instants without spaces. null is NULL. */
export function plainArray(values: readonly (string | number | bigint | boolean | null)[]): string {
  let text = '{';
  for (let index = 0; index < values.length; index += 1) {
    if (index > 0) text += ',';
    const value = values[index];
    text += value === null || value === undefined ? 'NULL' : String(value);
  }
  return `${text}}`;
}

const mustEscape = /["\\]/;
const escaped = /["\\]/g;

/** For any text. */
export function textArray(values: readonly (string | null)[]): string {
  let text = '{';
  for (let index = 0; index < values.length; index += 1) {
    if (index > 0) text += ',';
    const value = values[index];
    if (value === null || value === undefined) text += 'NULL';
    else text += `"${mustEscape.test(value) ? value.replace(escaped, '\\$&') : value}"`;
  }
  return `${text}}`;
}
