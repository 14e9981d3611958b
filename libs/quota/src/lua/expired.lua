#!lua flags=no-writes
-- Leases that have run out, longest ago first.
--
-- KEYS[1]    epoch
-- KEYS[2]    leases
-- ARGV[1]    epoch that the caller knows
-- ARGV[2]    at most how many
-- ARGV[3]    key prefix of the shard's lease records
--
-- Returns    E + epoch | array of id, record, id, record ... (record '' when there is none)
-- Effects    none.
-- @include clock

local epoch = redis.call('GET', KEYS[1])
if epoch ~= ARGV[1] then
  return 'E' .. (epoch or '')
end
local ids = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now_ms(), 'LIMIT', 0, ARGV[2])
local found = {}
for i = 1, #ids do
  found[i * 2 - 1] = ids[i]
  found[i * 2] = redis.call('GET', ARGV[3] .. ids[i]) or ''
end
return found
