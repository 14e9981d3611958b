-- Removes calendar fields of periods before the previous one. Called when a scope's first call of a month comes, so that
-- no job is needed; the previous period stays for the calls that were reserved in it.
local function prune(key, keep_day, keep_week, keep_month)
  local fields = redis.call('HKEYS', key)
  for i = 1, #fields do
    local period = string.match(fields[i], '^(%d%d%d%d%-[^|]+)')
    if period then
      local keep = keep_month
      if string.match(period, '^%d%d%d%d%-W%d%d$') then
        keep = keep_week
      elseif string.match(period, '^%d%d%d%d%-%d%d%-%d%d$') then
        keep = keep_day
      end
      if period < keep then
        redis.call('HDEL', key, fields[i])
      end
    end
  end
end
