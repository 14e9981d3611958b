-- The store's clock in whole milliseconds since the Unix epoch; read once per script, so that one call sees one instant.
-- Tests replace this include with a movable clock; what ships has no way to set the time.
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
