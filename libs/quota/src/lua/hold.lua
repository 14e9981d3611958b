#!lua
-- Keeps, or gives up, the lock of who rebuilds a shard; only if it is still the caller's.
--
-- KEYS[1]    lock
-- ARGV[1]    token in the lock
-- ARGV[2]    how much longer to keep it, ms; 0 gives it up
--
-- Returns    1, or 0 when the lock is not the caller's
-- Effects    the lock.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
if ARGV[2] == '0' then
  redis.call('DEL', KEYS[1])
else
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
