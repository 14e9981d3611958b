#!lua
-- Reserves a call at every level of its path, or nothing at all.
--
-- KEYS[1]    epoch
-- KEYS[2]    lease record
-- KEYS[3]    leases (ZSET, score = expiry)
-- KEYS[4..]  scope hashes, enterprise first, key last
-- ARGV[1]    epoch that the caller knows
-- ARGV[2]    plan, msgpack, flat: valid from, valid until, number of scopes, oldest day, week and month to keep; then per
--            scope: numbers of concurrency, calendar and ring fields and of checks; the fields in that order (for the
--            enterprise also the policy version's); per ring metric, width, n; per check kind (1 concurrency,
--            2 calendar, 3 ring), ordinal of its field within the kind, metric, amount (limbs), 1 when hard
-- ARGV[3]    the call, doubles: policy version, lease ms, window input, window output, budget input, output, cost (limbs)
-- ARGV[4]    descriptor for settling, msgpack (see includes/release.lua)
-- ARGV[5]    event draft, JSON
-- ARGV[6]    lease id
--
-- Returns    E + epoch                 the caller's epoch is not the shard's (empty: none)
--            P + now                   a calendar period has turned: plan again
--            S + version               the caller's policy is out of date
--            G + state                 the lease has ended before (voided, settled, expired)
--            A | D | R + doubles       admitted, admitted before, refused: now, reserved at, expires at, number of limits
--                                      passed, per such: check, settled + reserved with this call, its reserved part
--                                      (limbs), wait in ms (-1: not known here); then for A and D per check what is
--                                      taken now (limbs)
-- Effects    when admitted: scope hashes, lease record, leases. Otherwise none: every level is read before any is written.
-- @include clock
-- @include limbs
-- @include calendar
-- @include ring
-- @include lease
-- @include prune

local known = redis.call('MGET', KEYS[1], KEYS[2])
if known[1] ~= ARGV[1] then
  return 'E' .. (known[1] or '')
end
local earlier = known[2]
if earlier and string.sub(earlier, 1, 1) ~= 'R' then
  return 'G' .. string.sub(earlier, 1, 1)
end
local now = now_ms()
local plan = cmsgpack.unpack(ARGV[2])
if now < plan[1] or now >= plan[2] then
  return 'P' .. struct.pack('<d', now)
end

local version, lease_ms, window_in, window_out, in_high, in_low, out_high, out_low, cost_high, cost_low =
  struct.unpack('<dddddddddd', ARGV[3])
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

local scopes = plan[3]
local writes, fresh = {}, {}
local taken, taken_length = {}, 0
local passed, passed_length = {}, 0
local refused = false
local check_number = 0
local at = 7
for scope = 1, scopes do
  local slots, calendars, rings, checks = plan[at], plan[at + 1], plan[at + 2], plan[at + 3]
  local first = at + 4
  local last = first + slots + calendars + rings - 1
  if scope == 1 then
    last = last + 1
  end
  local values = redis.call('HMGET', KEYS[3 + scope], unpack(plan, first, last))
  if scope == 1 and tonumber(values[#values] or 0) ~= version then
    return 'S' .. (values[#values] or '0')
  end
  local set = {}
  local in_flight = {}
  for slot = 1, slots do
    in_flight[slot] = (values[slot] or 0) + one
    set[slot * 2 - 1], set[slot * 2] = plan[first + slot - 1], in_flight[slot]
  end
  local records = {}
  for calendar = 1, calendars do
    local field = slots + calendar
    local c = calendar_open(values[field])
    c[1], c[2] = c[1] + one, c[2] + one
    c[3], c[4] = add(c[3], c[4], in_high, in_low)
    c[5], c[6] = add(c[5], c[6], out_high, out_low)
    c[7], c[8] = add(c[7], c[8], cost_high, cost_low)
    c[9], c[10] = add(c[9], c[10], in_high, in_low)
    c[11], c[12] = add(c[11], c[12], out_high, out_low)
    c[13], c[14] = add(c[13], c[14], cost_high, cost_low)
    records[calendar] = c
    set[field * 2 - 1], set[field * 2] = plan[first + field - 1], calendar_pack(c)
  end
  if not values[slots + 1] then
    fresh[#fresh + 1] = KEYS[3 + scope]
  end
  at = last + 1
  local births, sums = {}, {}
  for ring = 1, rings do
    local field = slots + calendars + ring
    local value, sum, birth = ring_add(values[field], plan[at + 1], plan[at + 2], now, window_ask[plan[at]])
    births[ring], sums[ring] = birth, sum
    set[field * 2 - 1], set[field * 2] = plan[first + field - 1], value
    at = at + 3
  end
  local ring_parameters = at - rings * 3
  writes[scope] = set

  for _ = 1, checks do
    check_number = check_number + 1
    local kind, ordinal, metric = plan[at], plan[at + 1], plan[at + 2]
    local limit_high, limit_low, hard = plan[at + 3], plan[at + 4], plan[at + 5]
    at = at + 6
    local high, low, wait, over = 0, 0, -1, false
    if kind == 2 then
      high, low = calendar_metric(records[ordinal], metric, 0)
      over = asks[metric] and exceeds(high, low, limit_high, limit_low)
    elseif kind == 1 then
      low = in_flight[ordinal]
      over = one > 0 and exceeds(0, low, limit_high, limit_low)
    else
      local sum, birth = sums[ordinal], births[ordinal]
      local width, n = plan[ring_parameters + ordinal * 3 - 2], plan[ring_parameters + ordinal * 3 - 1]
      local amount = limit_high * limb + limit_low
      local allowed = amount
      if metric == 1 then
        allowed = warm_amount(amount, birth, width * n, now)
      end
      over = window_ask[metric] > 0 and sum > allowed
      if over then
        wait = 0
        if sum > amount then
          -- Of what stands there without this call's own reservation.
          local window = ring_open(values[slots + calendars + ordinal], width, n, now)
          wait = ring_wait(window, width, n, now, sum - amount)
        end
        if wait >= 0 and allowed < amount then
          wait = math.max(wait, warm_wait(amount, birth, width * n, now, sum))
        end
      end
      sum = sum + amount - allowed
      high = math.floor(sum / limb)
      low = sum - high * limb
    end
    if one > 0 and (over or (limit_high == 0 and limit_low == 0)) then
      local reserved_high, reserved_low = 0, 0
      if kind == 2 then
        reserved_high, reserved_low = calendar_metric(records[ordinal], metric, 6)
      end
      passed[passed_length + 1], passed[passed_length + 2], passed[passed_length + 3] = check_number, high, low
      passed[passed_length + 4], passed[passed_length + 5], passed[passed_length + 6] =
        reserved_high, reserved_low, wait
      passed_length = passed_length + 6
      refused = refused or hard == 1
    end
    taken[taken_length + 1], taken[taken_length + 2] = high, low
    taken_length = taken_length + 2
  end
end

local header = string.rep('d', 4 + passed_length)
if refused then
  return 'R' .. struct.pack('<' .. header, now, 0, 0, passed_length / 6, unpack(passed))
end
if earlier then
  local lease = lease_open(earlier)
  return 'D'
    .. struct.pack('<' .. header, now, lease[7], lease[1], 0)
    .. struct.pack('<' .. string.rep('d', taken_length), unpack(taken))
end

for scope = 1, scopes do
  redis.call('HSET', KEYS[3 + scope], unpack(writes[scope]))
end
for i = 1, #fresh do
  prune(fresh[i], plan[4], plan[5], plan[6])
end
local expires_at = now + lease_ms
redis.call(
  'SET',
  KEYS[2],
  'R'
    .. struct.pack(lease_format, expires_at, 0, 0, 0, 0, 0, now, lease_ms, window_in, window_out, 0, 0, 0,
      in_high, in_low, out_high, out_low, cost_high, cost_low, #ARGV[4])
    .. ARGV[4]
    .. ARGV[5]
)
redis.call('ZADD', KEYS[3], expires_at, ARGV[6])
return 'A'
  .. struct.pack('<' .. header, now, now, expires_at, passed_length / 6, unpack(passed))
  .. struct.pack('<' .. string.rep('d', taken_length), unpack(taken))
