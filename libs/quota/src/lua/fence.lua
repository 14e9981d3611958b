#!lua
-- What a caller needs to know before it trusts a shard: its epoch, and whether this server process is the one that the
-- epoch was declared on. A restarted or failed-over server may have lost its last seconds.
--
-- KEYS[1]    epoch
-- KEYS[2]    meta of the shard (hash)
-- KEYS[3]    sequence number of the shard's last event
--
-- Returns    array: epoch or '', '1' when the epoch was declared on this server process, else '0', shard count or '',
--            run id of this server process, sequence number of the shard's last event, and the epoch and sequence
--            number up to which the counters hold the events of earlier epochs
-- Effects    none.

local run_id = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
local meta = redis.call('HMGET', KEYS[2], 'run_id', 'shard_count', 'counted_epoch', 'counted_seq')
return {
  redis.call('GET', KEYS[1]) or '',
  meta[1] == run_id and '1' or '0',
  meta[2] or '',
  run_id,
  redis.call('GET', KEYS[3]) or '0',
  meta[3] or '',
  meta[4] or '0',
}
