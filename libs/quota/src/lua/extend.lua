#!lua
-- The taximeter: reserves more output for a running call, at every level or at none. Hard budgets may refuse; sliding
-- windows are charged and never refuse, because a running stream is not cut for a rate.
--
-- KEYS[1]    epoch
-- KEYS[2]    lease record
-- KEYS[3]    leases
-- KEYS[4..]  scope hashes, enterprise first
-- ARGV[1]    epoch that the caller knows
-- ARGV[2]    plan of the call's admission (see admit.lua)
-- ARGV[3]    doubles: output, cost (limbs), observed input, output, observed cost (limbs)
-- ARGV[4]    lease id
--
-- Returns    E + epoch | M (no such lease) | S | V | X (has ended)
--            A + expires at            granted
--            R + doubles               refused: now, number of limits passed, per such as in admit.lua
-- Effects    scope hashes, lease record, leases. When refused only what was observed is noted.
-- @include clock
-- @include limbs
-- @include calendar
-- @include ring
-- @include lease

local known = redis.call('MGET', KEYS[1], KEYS[2])
if known[1] ~= ARGV[1] then
  return 'E' .. (known[1] or '')
end
local record = known[2]
if not record then
  return 'M'
end
local state = string.sub(record, 1, 1)
if state ~= 'R' then
  return state
end
local now = now_ms()
local plan = cmsgpack.unpack(ARGV[2])
local out_high, out_low, cost_high, cost_low, seen_in, seen_out, seen_cost_high, seen_cost_low =
  struct.unpack('<dddddddd', ARGV[3])
local output = out_high * limb + out_low
local lease = lease_open(record)
local expires_at = math.max(lease[1], now + lease[8])
-- Requests and input do not grow.
local asks = { false, output > 0, false, output > 0, cost_high + cost_low > 0 }
local grows = { false, true, false, true }

local writes = {}
local passed, passed_length = {}, 0
local refused = false
local check_number = 0
local at = 7
for scope = 1, plan[3] do
  local slots, calendars, rings, checks = plan[at], plan[at + 1], plan[at + 2], plan[at + 3]
  local first = at + 4
  local last = first + slots + calendars + rings - 1
  local values = redis.call('HMGET', KEYS[3 + scope], unpack(plan, first, last))
  at = last + 1
  if scope == 1 then
    at = at + 1
  end
  local set, length = {}, 0
  local records = {}
  for calendar = 1, calendars do
    local field = slots + calendar
    local c = calendar_open(values[field])
    c[5], c[6] = add(c[5], c[6], out_high, out_low)
    c[7], c[8] = add(c[7], c[8], cost_high, cost_low)
    c[11], c[12] = add(c[11], c[12], out_high, out_low)
    c[13], c[14] = add(c[13], c[14], cost_high, cost_low)
    records[calendar] = c
    if values[field] then
      set[length + 1], set[length + 2] = plan[first + field - 1], calendar_pack(c)
      length = length + 2
    end
  end
  for ring = 1, rings do
    local field = slots + calendars + ring
    local metric, width, n = plan[at], plan[at + 1], plan[at + 2]
    if grows[metric] and values[field] then
      set[length + 1], set[length + 2] = plan[first + field - 1], (ring_add(values[field], width, n, now, output))
      length = length + 2
    end
    at = at + 3
  end
  writes[scope] = set
  for _ = 1, checks do
    check_number = check_number + 1
    local kind, ordinal, metric = plan[at], plan[at + 1], plan[at + 2]
    local limit_high, limit_low, hard = plan[at + 3], plan[at + 4], plan[at + 5]
    at = at + 6
    if kind == 2 and hard == 1 and asks[metric] then
      local high, low = calendar_metric(records[ordinal], metric, 0)
      if exceeds(high, low, limit_high, limit_low) then
        local reserved_high, reserved_low = calendar_metric(records[ordinal], metric, 6)
        passed[passed_length + 1], passed[passed_length + 2], passed[passed_length + 3] = check_number, high, low
        passed[passed_length + 4], passed[passed_length + 5], passed[passed_length + 6] =
          reserved_high, reserved_low, -1
        passed_length = passed_length + 6
        refused = true
      end
    end
  end
end

local observed = { 1, seen_in, seen_out, seen_cost_high, seen_cost_low }
if refused then
  redis.call('SETRANGE', KEYS[2], 1, struct.pack(lease_observed_format, lease[1], unpack(observed)))
  return 'R' .. struct.pack('<' .. string.rep('d', 2 + passed_length), now, passed_length / 6, unpack(passed))
end
for scope = 1, plan[3] do
  if #writes[scope] > 0 then
    redis.call('HSET', KEYS[3 + scope], unpack(writes[scope]))
  end
end
lease[1], lease[2], lease[3], lease[4], lease[5], lease[6] = expires_at, unpack(observed)
lease[11], lease[12], lease[13] = lease[11] + output, now, output
lease[16], lease[17] = add(lease[16], lease[17], out_high, out_low)
lease[18], lease[19] = add(lease[18], lease[19], cost_high, cost_low)
redis.call('SETRANGE', KEYS[2], 1, struct.pack(lease_format, unpack(lease, 1, 20)))
redis.call('ZADD', KEYS[3], 'XX', expires_at, ARGV[4])
return 'A' .. struct.pack('<d', expires_at)
