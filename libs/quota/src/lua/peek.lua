#!lua flags=no-writes
-- Counters of several scopes at one instant.
--
-- KEYS[1]    epoch
-- KEYS[2..]  scope hashes
-- ARGV[1]    epoch that the caller knows
-- ARGV[2]    doubles: valid from, valid until (of the calendar fields)
-- ARGV[3..]  per scope its fields, msgpack
--
-- Returns    E + epoch | P + now | array of now (doubles) and per scope the values of its fields
-- Effects    none.
-- @include clock

local epoch = redis.call('GET', KEYS[1])
if epoch ~= ARGV[1] then
  return 'E' .. (epoch or '')
end
local now = now_ms()
local from, till = struct.unpack('<dd', ARGV[2])
if now < from or now >= till then
  return 'P' .. struct.pack('<d', now)
end
local result = { struct.pack('<d', now) }
for i = 2, #KEYS do
  result[i] = redis.call('HMGET', KEYS[i], unpack(cmsgpack.unpack(ARGV[i + 1])))
end
return result
