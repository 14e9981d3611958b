import { scriptSources } from './generated/scripts.js';

export type ScriptName = keyof typeof scriptSources;
export type ScriptSources = Readonly<Record<ScriptName, string>>;

/** The scripts as they ship. */
export const shippedScripts: ScriptSources = scriptSources;

/**
 * For tests only: the same scripts with a clock that can be moved. The include `clock` is replaced as a whole, so what
 * ships has no way to set the time. Until {@link storeClockKey} is set, it is Redis' own.
 */
export function withMovableClock(sources: ScriptSources): ScriptSources {
  const movable = `local function now_ms()
  local set = redis.call('GET', string.match(KEYS[1], '^.-}') .. ':test-clock')
  if set then
    return tonumber(set)
  end
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end`;
  return Object.fromEntries(
    Object.entries(sources).map(([name, source]) => [
      name,
      source.replace(/-- begin clock\n[\s\S]*?\n-- end clock/, () => movable),
    ]),
  ) as Record<ScriptName, string>;
}
