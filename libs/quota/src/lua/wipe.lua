#!lua
-- Removes keys of a shard that is being rebuilt; only while the rebuild is still the caller's, so that one who was
-- paused too long cannot wipe what another has declared since.
--
-- KEYS[1]    lock of who rebuilds the shard
-- KEYS[2..]  scope hashes, lease records, leases
-- ARGV[1]    token in the lock
--
-- Returns    1, or 0 when the lock is not the caller's
-- Effects    the keys are gone.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
for i = 2, #KEYS do
  redis.call('UNLINK', KEYS[i])
end
return 1
