#!lua
-- Undoes a reservation whose call never reached an upstream. Leaves a tombstone, also when the lease is not there yet:
-- an admit that timed out at the caller may still be on its way.
--
-- KEYS[1]    epoch
-- KEYS[2]    lease record
-- KEYS[3]    leases
-- ARGV[1]    epoch that the caller knows
-- ARGV[2]    key prefix of the shard's scope hashes
-- ARGV[3]    lease id
-- ARGV[4]    how long the tombstone is kept, ms
--
-- Returns    E + epoch | V (voided now or before) | S | X (ended otherwise: nothing changed)
-- Effects    scope hashes, lease record (tombstone), leases.
-- @include builtins
-- @include clock
-- @include limbs
-- @include calendar
-- @include ring
-- @include slot
-- @include lease
-- @include release

local epoch = call('GET', KEYS[1])
if epoch ~= ARGV[1] then
  return 'E' .. (epoch or '')
end
local record = lease_read(KEYS[2])
local state = sub(record, 1, 1)
if state ~= '' then
  if state ~= 'R' then
    return state
  end
  local header = lease_open(record)
  release(ARGV[2], lease_descriptor(KEYS[2], header), header, now_ms(), {
    requests = 0,
    in_high = 0,
    in_low = 0,
    out_high = 0,
    out_low = 0,
    cost_high = 0,
    cost_low = 0,
  })
  call('ZREM', KEYS[3], ARGV[3])
end
call('SET', KEYS[2], 'V', 'PX', ARGV[4])
return 'V'
