#!lua
-- Raises calendar counters to what the ledger has booked. What is settled here is never lowered: the ledger lags, and a
-- counter that was not kept for a while has gaps; the larger of the two is nearer to the truth. Reservations stay.
--
-- KEYS[1]    scope hash
-- ARGV[1]    number of records; then field and record (see includes/calendar.lua) of each
--
-- Returns    number of fields written
-- Effects    scope hash.
-- @include builtins
-- @include limbs
-- @include calendar

local set, length = {}, 0
for i = 1, tonumber(ARGV[1]) do
  local field = ARGV[i * 2]
  local seed = calendar_open(ARGV[i * 2 + 1])
  local c = calendar_open(call('HGET', KEYS[1], field))
  c[8] = math.max(c[8], seed[8])
  for at = 9, 13, 2 do
    if exceeds(seed[at], seed[at + 1], c[at], c[at + 1]) then
      c[at], c[at + 1] = seed[at], seed[at + 1]
    end
  end
  set[length + 1], set[length + 2] = field, calendar_pack(c)
  length = length + 2
end
if length > 0 then
  call('HSET', KEYS[1], unpack(set))
end
return length / 2
