import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import luaparse from 'luaparse';

/** What Redis 7 gives a script beside Lua 5.1's own library. */
const knownGlobals = new Set([
  'KEYS',
  'ARGV',
  'redis',
  'cjson',
  'cmsgpack',
  'struct',
  'bit',
  'math',
  'string',
  'table',
  'tonumber',
  'tostring',
  'type',
  'unpack',
  'pairs',
  'ipairs',
  'select',
  'error',
  'pcall',
]);

const includeLine = /^-- @include (\S+)$/;

/**
 * Reads the scripts of a folder and resolves their includes, each once.
 *
 * @returns {Record<string, string>} script name (file name in camel case) → source.
 * @throws Error that lists every fault: bad shebang, missing header, syntax, undeclared global, unused include.
 */
export function compileScripts(folder) {
  const faults = [];
  const scripts = {};
  const files = readdirSync(folder)
    .filter((file) => file.endsWith('.lua'))
    .sort();
  for (const file of files) {
    const source = readFileSync(join(folder, file), 'utf8');
    faults.push(...headerFaults(source).map((fault) => `${file}: ${fault}`));
    const compiled = withIncludes(source, join(folder, 'includes'));
    faults.push(...lint(compiled).map((fault) => `${file}: ${fault}`));
    const name = file.replace(/\.lua$/, '').replace(/-(\w)/g, (_, letter) => letter.toUpperCase());
    scripts[name] = compiled;
  }
  if (faults.length > 0) throw new Error(`Lua scripts have faults:\n  ${faults.join('\n  ')}`);
  return scripts;
}

/** The first line must be a shebang (it makes Redis refuse keys of another slot), and the header complete. */
function headerFaults(source) {
  const faults = [];
  if (!/^#!lua( flags=[a-z,-]+)?\n/.test(source)) faults.push('must start with #!lua');
  const header = source.split('\n').slice(1);
  const end = header.findIndex((line) => !line.startsWith('--'));
  const text = header.slice(0, end).join('\n');
  for (const part of ['KEYS[1]', 'ARGV[1]', 'Returns', 'Effects']) {
    if (part === 'ARGV[1]' && !source.includes('ARGV')) continue;
    if (!text.includes(`-- ${part}`)) faults.push(`header does not name ${part}`);
  }
  return faults;
}

function withIncludes(source, folder) {
  return source
    .split('\n')
    .map((line) => {
      const name = includeLine.exec(line)?.[1];
      if (name === undefined) return line;
      const included = readFileSync(join(folder, `${name}.lua`), 'utf8').trimEnd();
      return `-- begin ${name}\n${included}\n-- end ${name}`;
    })
    .join('\n');
}

/** Faults of one compiled script: syntax, and names that are neither declared nor given by Redis. */
export function lint(source) {
  const body = source.replace(/^#!.*/, '');
  try {
    const { globals } = luaparse.parse(body, { luaVersion: '5.1', scope: true, locations: true });
    return globals
      .filter(({ name }) => !knownGlobals.has(name))
      .map(({ name, loc }) => `undeclared global ${name} (line ${loc.start.line})`);
  } catch (error) {
    return [error.message];
  }
}
