#!lua
-- Corrects the money of a lease that the reaper had charged, once. Tokens stay as booked: an adjustment event has none.
--
-- KEYS[1]    epoch
-- KEYS[2]    lease record
-- KEYS[3]    sequence number of the shard's last event
-- KEYS[4]    outbox
-- ARGV[1]    epoch that the caller knows
-- ARGV[2]    key prefix of the shard's scope hashes
-- ARGV[3]    difference of cost, doubles (limbs; negative: the reaper charged too much)
-- ARGV[4]    adjustment event, JSON
-- ARGV[5]    id of the adjustment event
-- ARGV[6]    how long the tombstone is kept, ms
--
-- Returns    E + epoch | M (no such lease) | state (not expired) | O + seq
-- Effects    scope hashes, lease record (tombstone), sequence number, outbox.
-- @include builtins
-- @include limbs
-- @include calendar
-- @include lease

local epoch = call('GET', KEYS[1])
if epoch ~= ARGV[1] then
  return 'E' .. (epoch or '')
end
local record = lease_read(KEYS[2])
local state = sub(record, 1, 1)
if state == '' then
  return 'M'
elseif state ~= 'X' then
  return state
end
local high, low = read('<dd', ARGV[3])
local descriptor = lease_descriptor(KEYS[2], lease_open(record))
local at = 2
for _ = 1, descriptor[1] do
  local key = ARGV[2] .. descriptor[at]
  local slots, calendars, rings = descriptor[at + 1], descriptor[at + 2], descriptor[at + 3]
  for field = at + 4 + slots, at + 3 + slots + calendars do
    local value = call('HGET', key, descriptor[field])
    if value then
      local c = calendar_open(value)
      c[13], c[14] = add(c[13], c[14], high, low)
      call('HSET', key, descriptor[field], calendar_pack(c))
    end
  end
  at = at + 4 + slots + calendars + rings * 4
end
call('SET', KEYS[2], 'S', 'PX', ARGV[6])
local seq = string.format('%.0f', call('INCR', KEYS[3]))
call('XADD', KEYS[4], '*', 'id', ARGV[5], 'seq', seq, 'epoch', ARGV[1], 'event', ARGV[4])
return 'O' .. seq
