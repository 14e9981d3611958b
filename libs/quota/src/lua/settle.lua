#!lua
-- Ends a lease with what the call really used: counters, slot, sequence number and usage event in one step.
--
-- KEYS[1]    epoch
-- KEYS[2]    lease record
-- KEYS[3]    leases
-- KEYS[4]    sequence number of the shard's last event
-- KEYS[5]    outbox (stream)
-- ARGV[1]    epoch that the caller knows
-- ARGV[2]    key prefix of the shard's scope hashes
-- ARGV[3]    what was used, doubles: input, output, cost (limbs)
-- ARGV[4]    usage event, JSON
-- ARGV[5]    lease id
-- ARGV[6]    how long the tombstone is kept, ms
-- ARGV[7]    '1' when the reaper settles: only if the lease has run out, and its late settlement stays possible
--
-- Returns    E + epoch        the caller's epoch is not the shard's
--            M                no such lease
--            N                not run out yet (reaper only)
--            S | V            settled before, voided before
--            X + doubles      expired before: instant of the reservation, charged input, output, cost (limbs)
--            O + seq          done
-- Effects    scope hashes, lease record (tombstone), leases, sequence number, outbox.
-- @include clock
-- @include limbs
-- @include calendar
-- @include ring
-- @include lease
-- @include release

local known = redis.call('MGET', KEYS[1], KEYS[2])
if known[1] ~= ARGV[1] then
  return 'E' .. (known[1] or '')
end
local record = known[2]
local reaping = ARGV[7] == '1'
if reaping and (not record or string.sub(record, 1, 1) ~= 'R') then
  -- Nothing to reap: take it off the list, so that it cannot stand in the way of others.
  redis.call('ZREM', KEYS[3], ARGV[5])
end
if not record then
  return 'M'
end
local state = string.sub(record, 1, 1)
if state == 'X' then
  local header = lease_open(record)
  return 'X' .. struct.pack('<ddddd', header[7], header[3], header[4], header[5], header[6])
elseif state ~= 'R' then
  return state
end
local header = lease_open(record)
local now = now_ms()
if reaping and header[1] > now then
  return 'N'
end
local in_high, in_low, out_high, out_low, cost_high, cost_low = struct.unpack('<dddddd', ARGV[3])
release(ARGV[2], record, header, now, {
  requests = 1,
  in_high = in_high,
  in_low = in_low,
  out_high = out_high,
  out_low = out_low,
  cost_high = cost_high,
  cost_low = cost_low,
})
redis.call('ZREM', KEYS[3], ARGV[5])
if reaping then
  -- The charge stays with the record, so that a settlement that comes after all can correct it.
  local charged = struct.pack(lease_observed_format, header[1], 1, in_high * limb + in_low, out_high * limb + out_low,
    cost_high, cost_low)
  local expired = 'X' .. charged .. string.sub(record, 2 + #charged, lease_header_bytes + header[20])
  redis.call('SET', KEYS[2], expired, 'PX', ARGV[6])
else
  redis.call('SET', KEYS[2], 'S', 'PX', ARGV[6])
end
local seq = redis.call('INCR', KEYS[4])
redis.call('XADD', KEYS[5], '*', 'id', ARGV[5], 'seq', seq, 'epoch', ARGV[1], 'event', ARGV[4])
return 'O' .. string.format('%.0f', seq)
