#!lua
-- Declares a new epoch of a shard: from here on its counters are trusted on this server process.
--
-- KEYS[1]    epoch
-- KEYS[2]    meta of the shard (hash)
-- KEYS[3]    sequence number of the shard's last event
-- KEYS[4]    lock of who rebuilds the shard
-- ARGV[1]    new epoch
-- ARGV[2]    token in the lock
-- ARGV[3]    shard count of the installation
-- ARGV[4]    epoch and
-- ARGV[5]    sequence number up to which the counters hold the events of before
--
-- Returns    1, or 0 when the lock was lost meanwhile
-- Effects    epoch, meta; the sequence begins anew; the lock is released.

if redis.call('GET', KEYS[4]) ~= ARGV[2] then
  return 0
end
local run_id = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
redis.call('HSET', KEYS[2], 'run_id', run_id, 'shard_count', ARGV[3], 'counted_epoch', ARGV[4], 'counted_seq', ARGV[5])
redis.call('SET', KEYS[3], '0')
redis.call('SET', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[4])
return 1
