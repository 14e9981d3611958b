#!lua
-- Reserves a call at every level of its path, or nothing at all.
--
-- KEYS[1]    epoch
-- KEYS[2]    lease record
-- KEYS[3]    leases (ZSET, score = expiry)
-- KEYS[4..]  scope hashes, enterprise first, key last
-- ARGV[1]    epoch that the caller knows
-- ARGV[2]    plan: names and
-- ARGV[3]    numbers (see includes/plan.lua)
-- ARGV[4]    policy version
-- ARGV[5]    lease record as it is to be kept (see includes/lease.lua), its instants still 0
-- ARGV[6]    lease id
--
-- Returns    E + epoch                 the caller's epoch is not the shard's (empty: none)
--            P + now                   a calendar period has turned: plan again
--            S + version               the caller's policy is out of date
--            G + state                 the lease has ended before (voided, settled, expired)
--            A | D | R + doubles       admitted, admitted before, refused: now, reserved at, expires at, number of limits
--                                      passed; for A and D per check what is taken now (limbs where it is of a calendar
--                                      period); per limit passed: check, settled + reserved with this call, its reserved
--                                      part (limbs), wait in ms (-1: not known here)
-- Effects    when admitted: scope hashes, lease record, leases. Otherwise none: every level is read before any is written.
-- @include builtins
-- @include clock
-- @include limbs
-- @include calendar
-- @include ring
-- @include slot
-- @include lease
-- @include plan
-- @include prune

local known = call('MGET', KEYS[1], KEYS[2])
if known[1] ~= ARGV[1] then
  return 'E' .. (known[1] or '')
end
local earlier = known[2]
if earlier and sub(earlier, 1, 1) ~= 'R' then
  return 'G' .. sub(earlier, 1, 1)
end
local now = now_ms()
local numbers = ARGV[3]
local valid_from, valid_until, scopes, at = read(plan_format, numbers)
if now < valid_from or now >= valid_until then
  return 'P' .. pack('<d', now)
end

local _, _, _, _, _, _, _, lease_ms, window_in, window_out, _, _, _, in_high, in_low, out_high, out_low, cost_high, cost_low =
  read(lease_format, ARGV[5], 2)
local one = 1
if earlier then
  -- Asked again: look at the same limits, take nothing.
  one, window_in, window_out = 0, 0, 0
  in_high, in_low, out_high, out_low, cost_high, cost_low = 0, 0, 0, 0, 0, 0
end
local window_ask = { one, window_in + window_out, window_in, window_out }
local tokens_high, tokens_low = add(in_high, in_low, out_high, out_low)
local asks = {
  one > 0,
  tokens_high + tokens_low > 0,
  in_high + in_low > 0,
  out_high + out_low > 0,
  cost_high + cost_low > 0,
}

local names = cmsgpack.unpack(ARGV[2])
-- Fields and their new values, of all scopes in a row, and where each scope's end: one table grows less often than many.
local writes, written, ends = {}, 0, {}
local fresh = {}
-- By number of the field, of the scope at hand: what is in flight or in the window with this call, the window's birth.
local sums, births = {}, {}
local taken, taken_length = {}, 0
local passed, passed_length = {}, 0
local refused = false
local check_number = 0
local name = 0
for scope = 1, scopes do
  local slots, calendars, rings, checks
  slots, calendars, rings, checks, at = read(plan_scope_format, numbers, at)
  local first = name
  name = name + slots + calendars + rings
  local values
  if scope == 1 then
    name = name + 1
    values = call('HMGET', KEYS[4], unpack(names, 1, name))
    local version = values[name] or '0'
    if version ~= ARGV[4] then
      return 'S' .. version
    end
  else
    values = call('HMGET', KEYS[3 + scope], unpack(names, first + 1, name))
  end
  local before = written
  local field = 0
  for _ = 1, slots do
    field = field + 1
    writes[written + 1] = names[first + field]
    writes[written + 2], sums[field] = slot_add(values[field], one)
    written = written + 2
  end
  if not values[field + 1] then
    fresh[#fresh + 1] = KEYS[3 + scope]
  end
  for _ = 1, calendars do
    field = field + 1
    writes[written + 1] = names[first + field]
    writes[written + 2] = calendar_reserve(values[field] or calendar_empty(), one, in_high, in_low, out_high, out_low,
      cost_high, cost_low)
    written = written + 2
  end
  for _ = 1, rings do
    field = field + 1
    local metric, width, n
    metric, width, n, at = read(plan_ring_format, numbers, at)
    writes[written + 1] = names[first + field]
    writes[written + 2], sums[field], births[field] = ring_add(values[field], width, n, now, window_ask[metric])
    written = written + 2
  end
  ends[scope] = written

  for _ = 1, checks do
    check_number = check_number + 1
    local kind, number, metric, limit_high, limit_low, hard, width, n
    kind, number, metric, limit_high, limit_low, hard, width, n, at = read(plan_check_format, numbers, at)
    local high, low, wait, over = 0, 0, -1, false
    if kind == 2 then
      high, low = calendar_taken(writes[before + number * 2], metric)
      over = asks[metric] and exceeds(high, low, limit_high, limit_low)
    elseif kind == 1 then
      low = sums[number]
      over = one > 0 and exceeds(0, low, limit_high, limit_low)
    else
      local sum = sums[number]
      local amount = limit_high * limb + limit_low
      local allowed = amount
      if metric == 1 then
        allowed = warm_amount(amount, births[number], width * n, now)
      end
      over = window_ask[metric] > 0 and sum > allowed
      if over then
        wait = 0
        if sum > amount then
          -- Of what stands there without this call's own reservation.
          wait = ring_wait(ring_add(values[number], width, n, now, 0), width, n, now, sum - amount)
        end
        if wait >= 0 and allowed < amount then
          wait = math.max(wait, warm_wait(amount, births[number], width * n, now, sum))
        end
      end
      -- What has not warmed up yet counts as taken. A window is far below 2^53: one limb that need not be below 1e9.
      low = sum + (amount - allowed)
    end
    if one > 0 and (over or (limit_high == 0 and limit_low == 0)) then
      local reserved_high, reserved_low = 0, 0
      if kind == 2 then
        reserved_high, reserved_low = calendar_part(writes[before + number * 2], metric, 0)
      end
      passed[passed_length + 1], passed[passed_length + 2], passed[passed_length + 3] = check_number, high, low
      passed[passed_length + 4], passed[passed_length + 5], passed[passed_length + 6] =
        reserved_high, reserved_low, wait
      passed_length = passed_length + 6
      refused = refused or hard == 1
    end
    if kind == 2 then
      taken[taken_length + 1], taken[taken_length + 2] = high, low
      taken_length = taken_length + 2
    else
      taken_length = taken_length + 1
      taken[taken_length] = low
    end
  end
end

local warnings = ''
if passed_length > 0 then
  warnings = pack('<' .. string.rep('d', passed_length), unpack(passed))
end
if refused then
  return 'R' .. pack('<dddd', now, 0, 0, passed_length / 6) .. warnings
end
local taken_format = '<c1dddd' .. string.rep('d', taken_length) .. 'c0'
if earlier then
  local lease = lease_open(earlier)
  taken[taken_length + 1] = ''
  return pack(taken_format, 'D', now, lease[1], lease[2], 0, unpack(taken))
end

local from = 1
for scope = 1, scopes do
  call('HSET', KEYS[3 + scope], unpack(writes, from, ends[scope]))
  from = ends[scope] + 1
end
for i = 1, #fresh do
  prune(fresh[i], names[name + 1], names[name + 2], names[name + 3])
end
local expires_at = now + lease_ms
call('SET', KEYS[2], ARGV[5])
call('SETRANGE', KEYS[2], '1', pack('<dd', now, expires_at))
call('ZADD', KEYS[3], expires_at, ARGV[6])
taken[taken_length + 1] = warnings
return pack(taken_format, 'A', now, now, expires_at, passed_length / 6, unpack(taken))
