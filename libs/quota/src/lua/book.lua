#!lua
-- Books a call that this shard's data knows nothing of: its lease was lost with an earlier epoch, or it was admitted by
-- a local engine while Redis was away. Once per id, like a settlement.
--
-- KEYS[1]    epoch
-- KEYS[2]    lease record (becomes a tombstone)
-- KEYS[3]    sequence number of the shard's last event
-- KEYS[4]    outbox
-- ARGV[1]    epoch that the caller knows
-- ARGV[2]    key prefix of the shard's scope hashes
-- ARGV[3]    what was used, doubles: input, output, cost (limbs)
-- ARGV[4]    usage event, JSON
-- ARGV[5]    lease id
-- ARGV[6]    how long the tombstone is kept, ms
-- ARGV[7]    descriptor (see includes/release.lua) of the fields to charge, or '' when the counters have it already
--
-- Returns    E + epoch | state of the lease (it is known: settle instead, or nothing to do) | O + seq
-- Effects    calendar fields of the scope hashes, lease record (tombstone), sequence number, outbox. Sliding windows and
--            slots are left alone: the call is over.
-- @include builtins
-- @include limbs
-- @include calendar
-- @include lease

local known = call('MGET', KEYS[1], KEYS[2])
if known[1] ~= ARGV[1] then
  return 'E' .. (known[1] or '')
end
-- A void does not stand in the way: an admit without an answer is voided here before the local engine admits the call.
local state = known[2] and sub(known[2], 1, 1)
if state and state ~= 'V' then
  return state
end
if ARGV[7] ~= '' then
  local in_high, in_low, out_high, out_low, cost_high, cost_low = read('<dddddd', ARGV[3])
  local descriptor = cmsgpack.unpack(ARGV[7])
  local at = 2
  for _ = 1, descriptor[1] do
    local key = ARGV[2] .. descriptor[at]
    local slots, calendars, rings = descriptor[at + 1], descriptor[at + 2], descriptor[at + 3]
    for field = at + 4 + slots, at + 3 + slots + calendars do
      local c = calendar_open(call('HGET', key, descriptor[field]))
      c[8] = c[8] + 1
      c[9], c[10] = add(c[9], c[10], in_high, in_low)
      c[11], c[12] = add(c[11], c[12], out_high, out_low)
      c[13], c[14] = add(c[13], c[14], cost_high, cost_low)
      call('HSET', key, descriptor[field], calendar_pack(c))
    end
    at = at + 4 + slots + calendars + rings * 4
  end
end
call('SET', KEYS[2], 'S', 'PX', ARGV[6])
local seq = string.format('%.0f', call('INCR', KEYS[3]))
call('XADD', KEYS[4], '*', 'id', ARGV[5], 'seq', seq, 'epoch', ARGV[1], 'event', ARGV[4])
return 'O' .. seq
