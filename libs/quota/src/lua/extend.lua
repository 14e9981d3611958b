#!lua
-- The taximeter: reserves more output for a running call, at every level or at none. Hard budgets may refuse; sliding
-- windows are charged and never refuse, because a running stream is not cut for a rate.
--
-- KEYS[1]    epoch
-- KEYS[2]    lease record
-- KEYS[3]    leases
-- KEYS[4..]  scope hashes, enterprise first
-- ARGV[1]    epoch that the caller knows
-- ARGV[2]    plan of the call's admission: names and
-- ARGV[3]    numbers (see includes/plan.lua)
-- ARGV[4]    doubles: output, cost (limbs), observed input, output, observed cost (limbs)
-- ARGV[5]    lease id
--
-- Returns    E + epoch | M (no such lease) | S | V | X (has ended)
--            A + expires at            granted
--            R + doubles               refused: now, number of limits passed, per such as in admit.lua
-- Effects    scope hashes, lease record, leases. When refused only what was observed is noted.
-- @include builtins
-- @include clock
-- @include limbs
-- @include calendar
-- @include ring
-- @include lease
-- @include plan

local epoch = call('GET', KEYS[1])
if epoch ~= ARGV[1] then
  return 'E' .. (epoch or '')
end
local record = lease_read(KEYS[2])
local state = sub(record, 1, 1)
if state == '' then
  return 'M'
elseif state ~= 'R' then
  return state
end
local now = now_ms()
local names, numbers = cmsgpack.unpack(ARGV[2]), ARGV[3]
local out_high, out_low, cost_high, cost_low, seen_in, seen_out, seen_cost_high, seen_cost_low =
  read('<dddddddd', ARGV[4])
local output = out_high * limb + out_low
local lease = lease_open(record)
local expires_at = math.max(lease[2], now + lease[8])
-- Requests and input do not grow.
local asks = { false, output > 0, false, output > 0, cost_high + cost_low > 0 }
local grows = { false, true, false, true }

local writes = {}
local passed, passed_length = {}, 0
local refused = false
local check_number = 0
local name = 0
local _, _, scopes, at = read(plan_format, numbers)
for scope = 1, scopes do
  local slots, calendars, rings, checks
  slots, calendars, rings, checks, at = read(plan_scope_format, numbers, at)
  local first = name
  name = name + slots + calendars + rings
  local values = call('HMGET', KEYS[3 + scope], unpack(names, first + 1, name))
  if scope == 1 then
    -- The policy version's.
    name = name + 1
  end
  local set, length = {}, 0
  local records = {}
  for calendar = 1, calendars do
    local field = slots + calendar
    local record_after = calendar_reserve(values[field] or calendar_empty(), 0, 0, 0, out_high, out_low, cost_high,
      cost_low)
    records[field] = record_after
    if values[field] then
      set[length + 1], set[length + 2] = names[first + field], record_after
      length = length + 2
    end
  end
  for ring = 1, rings do
    local field = slots + calendars + ring
    local metric, width, n
    metric, width, n, at = read(plan_ring_format, numbers, at)
    if grows[metric] and values[field] then
      set[length + 1], set[length + 2] = names[first + field], ring_add(values[field], width, n, now, output)
      length = length + 2
    end
  end
  writes[scope] = set
  for _ = 1, checks do
    check_number = check_number + 1
    local kind, number, metric, limit_high, limit_low, hard, _
    kind, number, metric, limit_high, limit_low, hard, _, _, at = read(plan_check_format, numbers, at)
    if kind == 2 and hard == 1 and asks[metric] then
      local high, low = calendar_taken(records[number], metric)
      if exceeds(high, low, limit_high, limit_low) then
        local reserved_high, reserved_low = calendar_part(records[number], metric, 0)
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
  call('SETRANGE', KEYS[2], lease_observed_at,
    pack(lease_observed_format, lease[2], unpack(observed)))
  return 'R' .. pack('<' .. string.rep('d', 2 + passed_length), now, passed_length / 6, unpack(passed))
end
for scope = 1, scopes do
  if #writes[scope] > 0 then
    call('HSET', KEYS[3 + scope], unpack(writes[scope]))
  end
end
lease[2], lease[3], lease[4], lease[5], lease[6], lease[7] = expires_at, unpack(observed)
lease[11], lease[12], lease[13] = lease[11] + output, now, output
lease[16], lease[17] = add(lease[16], lease[17], out_high, out_low)
lease[18], lease[19] = add(lease[18], lease[19], cost_high, cost_low)
call('SETRANGE', KEYS[2], '1', pack(lease_format, unpack(lease, 1, 20)))
call('ZADD', KEYS[3], 'XX', expires_at, ARGV[5])
return 'A' .. pack('<d', expires_at)
