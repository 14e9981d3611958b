#!lua
-- Adds an exact difference to one calendar counter, once per repair. Only at rest: with an open lease in the counter, or
-- with an event since the caller compared it with the ledger, nothing is changed.
--
-- KEYS[1]    epoch
-- KEYS[2]    sequence number of the shard's last event
-- KEYS[3]    scope hash
-- ARGV[1]    epoch that the difference was computed in
-- ARGV[2]    sequence number that it was computed at
-- ARGV[3]    field of the calendar record
-- ARGV[4]    field that remembers the repair
-- ARGV[5]    difference, doubles: requests, input, output, cost (the last three as limbs; negative takes away)
-- ARGV[6]    the counter that it was computed from, in the same shape
--
-- Returns    E + epoch | D + record before (done earlier) | C (events came, or the counter is another) | R (open leases)
--            | N (would be negative) | O + record before
-- Effects    scope hash.
-- @include builtins
-- @include limbs
-- @include calendar

local known = call('MGET', KEYS[1], KEYS[2])
if known[1] ~= ARGV[1] then
  return 'E' .. (known[1] or '')
end
local values = call('HMGET', KEYS[3], ARGV[3], ARGV[4])
if values[2] then
  return 'D' .. values[2]
end
if (known[2] or '0') ~= ARGV[2] then
  return 'C'
end
local c = calendar_open(values[1])
for at = 1, 7 do
  if c[at] ~= 0 then
    return 'R'
  end
end
-- Two repairs of the same difference: the second finds another counter than it was computed from.
local expected = { read('<ddddddd', ARGV[6]) }
for at = 1, 7 do
  if c[7 + at] ~= expected[at] then
    return 'C'
  end
end
local before = calendar_pack(c)
local change = { read('<ddddddd', ARGV[5]) }
c[8] = c[8] + change[1]
if c[8] < 0 then
  return 'N'
end
for at = 9, 13, 2 do
  c[at], c[at + 1] = add(c[at], c[at + 1], change[at - 7], change[at - 6])
  if c[at] < 0 then
    return 'N'
  end
end
call('HSET', KEYS[3], ARGV[3], calendar_pack(c), ARGV[4], before)
return 'O' .. before
