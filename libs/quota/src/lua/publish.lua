#!lua
-- Writes an enterprise's policy documents, bumps its version and announces it.
--
-- KEYS[1]    scope hash of the enterprise (holds the version, so that admit needs no extra read)
-- KEYS[2]    documents of the enterprise (hash)
-- ARGV[1]    enterprise id
-- ARGV[2]    channel
-- ARGV[3]    '1' replaces all documents, '0' changes some
-- ARGV[4]    enterprise document or ''
-- ARGV[5]    number of node documents; then id and document of each; then ids of nodes to remove
--
-- Returns    the new version
-- Effects    both hashes, a message "enterprise version" on the channel.
-- @include clock

-- Versions grow with the clock, so that they never repeat, even when Redis has lost the last one.
local before = tonumber(redis.call('HGET', KEYS[1], 'v') or '0')
local version = string.format('%.0f', math.max(before + 1, now_ms()))
if ARGV[3] == '1' then
  redis.call('DEL', KEYS[2])
end
if ARGV[4] ~= '' then
  redis.call('HSET', KEYS[2], 'enterprise', ARGV[4], 'enterprise_version', version)
end
local nodes = tonumber(ARGV[5])
for i = 1, nodes do
  redis.call('HSET', KEYS[2], 'node:' .. ARGV[4 + 2 * i], ARGV[5 + 2 * i])
end
for i = 6 + 2 * nodes, #ARGV do
  redis.call('HDEL', KEYS[2], 'node:' .. ARGV[i])
end
redis.call('HSET', KEYS[1], 'v', version)
redis.call('PUBLISH', ARGV[2], ARGV[1] .. ' ' .. version)
return version
