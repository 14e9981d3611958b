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
local reaping = ARGV[7] == '1'
if reaping and state ~= 'R' then
  -- Nothing to reap: take it off the list, so that it cannot stand in the way of others.
  call('ZREM', KEYS[3], ARGV[5])
end
if state == '' then
  return 'M'
elseif state == 'X' then
  local header = lease_open(record)
  return 'X' .. pack('<ddddd', header[1], header[4], header[5], header[6], header[7])
elseif state ~= 'R' then
  return state
end
local header = lease_open(record)
local now = now_ms()
if reaping and header[2] > now then
  return 'N'
end
local in_high, in_low, out_high, out_low, cost_high, cost_low = read('<dddddd', ARGV[3])
release(ARGV[2], lease_descriptor(KEYS[2], header), header, now, {
  requests = 1,
  in_high = in_high,
  in_low = in_low,
  out_high = out_high,
  out_low = out_low,
  cost_high = cost_high,
  cost_low = cost_low,
})
call('ZREM', KEYS[3], ARGV[5])
if reaping then
  -- The charge stays with the record, so that a settlement that comes after all can correct it.
  local charged = pack(lease_observed_format, header[2], 1, in_high * limb + in_low, out_high * limb + out_low,
    cost_high, cost_low)
  call('SETRANGE', KEYS[2], '0', 'X')
  call('SETRANGE', KEYS[2], lease_observed_at, charged)
  local without_draft = call('GETRANGE', KEYS[2], '0', lease_header_bytes + header[20] - 1)
  call('SET', KEYS[2], without_draft, 'PX', ARGV[6])
else
  call('SET', KEYS[2], 'S', 'PX', ARGV[6])
end
local seq = string.format('%.0f', call('INCR', KEYS[4]))
call('XADD', KEYS[5], '*', 'id', ARGV[5], 'seq', seq, 'epoch', ARGV[1], 'event', ARGV[4])
return 'O' .. seq
