// Generated from libs/quota/src/lua by tools/generate/10-lua.mjs. Do not edit.
export const scriptSources = {
  adjust: `#!lua
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
-- begin builtins
-- A local is found at once, a field of a global by two look-ups at each use: 5 % of what a level of an admission costs.
local call, pack, read, sub, floor = redis.call, struct.pack, struct.unpack, string.sub, math.floor
-- end builtins
-- begin limbs
-- Exact integers. A Lua number is a double and exact to 2^53 only, so an amount is two limbs, high * 1e9 + low with
-- 0 <= low < 1e9: exact to 9e18 and beyond. A negative amount has a negative high limb and a low limb that is not.
local limb = 1000000000

local function add(high, low, by_high, by_low)
  low = low + by_low
  if low >= limb then
    return high + by_high + 1, low - limb
  end
  return high + by_high, low
end

local function subtract(high, low, by_high, by_low)
  low = low - by_low
  if low < 0 then
    return high - by_high - 1, low + limb
  end
  return high - by_high, low
end

local function exceeds(high, low, than_high, than_low)
  return high > than_high or (high == than_high and low > than_low)
end
-- end limbs
-- begin calendar
-- One calendar record per scope, period and model: little-endian doubles in one hash field, amounts in limbs.
--    1 requests    2, 3 input tokens    4, 5 output tokens    6, 7 cost (nano)    reserved by open leases
--    8 requests    9,10 input tokens   11,12 output tokens   13,14 cost           settled
-- A limit compares the sum of the two halves. They are kept apart because an admission changes the first alone.
local calendar_format = '<dddddddddddddd'
local calendar_half_bytes = 56

local empty

local function calendar_empty()
  empty = empty or string.rep('\\0', 2 * calendar_half_bytes)
  return empty
end

local function calendar_open(value)
  return { read(calendar_format, value or calendar_empty()) }
end

local function calendar_pack(record)
  return pack(calendar_format, unpack(record, 1, 14))
end

-- The packed record with more reserved. Runs at every level of every call: so no table, and the settled half is copied
-- as it is.
local function calendar_reserve(value, requests, in_high, in_low, out_high, out_low, cost_high, cost_low)
  local held, held_in_high, held_in_low, held_out_high, held_out_low, held_cost_high, held_cost_low =
    read('<ddddddd', value)
  in_high, in_low = add(held_in_high, held_in_low, in_high, in_low)
  out_high, out_low = add(held_out_high, held_out_low, out_high, out_low)
  cost_high, cost_low = add(held_cost_high, held_cost_low, cost_high, cost_low)
  return pack('<dddddddc0', held + requests, in_high, in_low, out_high, out_low, cost_high, cost_low,
    sub(value, calendar_half_bytes + 1))
end

-- Metric codes: 1 requests, 2 tokens (input + output), 3 input, 4 output, 5 cost. Returns the limbs of the metric in the
-- half of a packed record that begins after \`offset\` bytes: 0 for what is reserved, 56 for what is settled.
local function calendar_part(value, metric, offset)
  if metric == 5 then
    return read('<dd', value, offset + 41)
  elseif metric == 2 then
    local in_high, in_low, out_high, out_low = read('<dddd', value, offset + 9)
    return add(in_high, in_low, out_high, out_low)
  elseif metric == 3 then
    return read('<dd', value, offset + 9)
  elseif metric == 4 then
    return read('<dd', value, offset + 25)
  end
  local requests = read('<d', value, offset + 1)
  local high = floor(requests / limb)
  return high, requests - high * limb
end

-- Settled + reserved.
local function calendar_taken(value, metric)
  if metric == 5 then
    -- The most frequent by far.
    local held_high, held_low = read('<dd', value, 41)
    local high, low = read('<dd', value, 97)
    return add(high, low, held_high, held_low)
  end
  local high, low = calendar_part(value, metric, 0)
  return add(high, low, calendar_part(value, metric, calendar_half_bytes))
end
-- end calendar
-- begin lease
-- The lease record: one string. Byte 1 is the state: R reserved, S settled, V voided, X expired (charged by the reaper).
-- R and X go on with little-endian doubles, then the length of the descriptor, the descriptor and the event draft:
--   1 reserved at  2 expires at
--   3 observed? (0/1)   4 observed input   5 observed output   6, 7 observed cost (limbs)
--   8 lease ms
--   9 window input 10 window output 11 window output of extensions 12 instant and 13 amount of the last extension
--  14,15 budget input  16,17 budget output  18,19 budget cost (limbs)
-- Instants in ms. The caller of an admission sends the record ready made but for the two instants, so that descriptor and
-- draft go through no script: every string that a script makes is hashed byte by byte, and these are the longest. For the
-- same reason the others read the header alone, then the descriptor. A heartbeat rewrites numbers 2 to 7.
local lease_format = '<dddddddddddddddddddI4'
local lease_observed_format = '<dddddd'
local lease_observed_at = '9'
local lease_header_bytes = 1 + 19 * 8 + 4

-- The state and what follows it up to the descriptor; the state alone of a lease that has ended; '' when there is none.
local function lease_read(key)
  return call('GETRANGE', key, '0', '156')
end

local function lease_open(record)
  return { read(lease_format, record, 2) }
end

local function lease_descriptor(key, header)
  return cmsgpack.unpack(call('GETRANGE', key, '157', lease_header_bytes + header[20] - 1))
end
-- end lease

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
`,
  admit: `#!lua
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
-- begin builtins
-- A local is found at once, a field of a global by two look-ups at each use: 5 % of what a level of an admission costs.
local call, pack, read, sub, floor = redis.call, struct.pack, struct.unpack, string.sub, math.floor
-- end builtins
-- begin clock
-- The store's clock in whole milliseconds since the Unix epoch; read once per script, so that one call sees one instant.
-- Tests replace this include with a movable clock; what ships has no way to set the time.
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
-- end clock
-- begin limbs
-- Exact integers. A Lua number is a double and exact to 2^53 only, so an amount is two limbs, high * 1e9 + low with
-- 0 <= low < 1e9: exact to 9e18 and beyond. A negative amount has a negative high limb and a low limb that is not.
local limb = 1000000000

local function add(high, low, by_high, by_low)
  low = low + by_low
  if low >= limb then
    return high + by_high + 1, low - limb
  end
  return high + by_high, low
end

local function subtract(high, low, by_high, by_low)
  low = low - by_low
  if low < 0 then
    return high - by_high - 1, low + limb
  end
  return high - by_high, low
end

local function exceeds(high, low, than_high, than_low)
  return high > than_high or (high == than_high and low > than_low)
end
-- end limbs
-- begin calendar
-- One calendar record per scope, period and model: little-endian doubles in one hash field, amounts in limbs.
--    1 requests    2, 3 input tokens    4, 5 output tokens    6, 7 cost (nano)    reserved by open leases
--    8 requests    9,10 input tokens   11,12 output tokens   13,14 cost           settled
-- A limit compares the sum of the two halves. They are kept apart because an admission changes the first alone.
local calendar_format = '<dddddddddddddd'
local calendar_half_bytes = 56

local empty

local function calendar_empty()
  empty = empty or string.rep('\\0', 2 * calendar_half_bytes)
  return empty
end

local function calendar_open(value)
  return { read(calendar_format, value or calendar_empty()) }
end

local function calendar_pack(record)
  return pack(calendar_format, unpack(record, 1, 14))
end

-- The packed record with more reserved. Runs at every level of every call: so no table, and the settled half is copied
-- as it is.
local function calendar_reserve(value, requests, in_high, in_low, out_high, out_low, cost_high, cost_low)
  local held, held_in_high, held_in_low, held_out_high, held_out_low, held_cost_high, held_cost_low =
    read('<ddddddd', value)
  in_high, in_low = add(held_in_high, held_in_low, in_high, in_low)
  out_high, out_low = add(held_out_high, held_out_low, out_high, out_low)
  cost_high, cost_low = add(held_cost_high, held_cost_low, cost_high, cost_low)
  return pack('<dddddddc0', held + requests, in_high, in_low, out_high, out_low, cost_high, cost_low,
    sub(value, calendar_half_bytes + 1))
end

-- Metric codes: 1 requests, 2 tokens (input + output), 3 input, 4 output, 5 cost. Returns the limbs of the metric in the
-- half of a packed record that begins after \`offset\` bytes: 0 for what is reserved, 56 for what is settled.
local function calendar_part(value, metric, offset)
  if metric == 5 then
    return read('<dd', value, offset + 41)
  elseif metric == 2 then
    local in_high, in_low, out_high, out_low = read('<dddd', value, offset + 9)
    return add(in_high, in_low, out_high, out_low)
  elseif metric == 3 then
    return read('<dd', value, offset + 9)
  elseif metric == 4 then
    return read('<dd', value, offset + 25)
  end
  local requests = read('<d', value, offset + 1)
  local high = floor(requests / limb)
  return high, requests - high * limb
end

-- Settled + reserved.
local function calendar_taken(value, metric)
  if metric == 5 then
    -- The most frequent by far.
    local held_high, held_low = read('<dd', value, 41)
    local high, low = read('<dd', value, 97)
    return add(high, low, held_high, held_low)
  end
  local high, low = calendar_part(value, metric, 0)
  return add(high, low, calendar_part(value, metric, calendar_half_bytes))
end
-- end calendar
-- begin ring
-- A sliding window of \`n\` sub-buckets of \`width\` ms in one hash field. Little-endian doubles: total (the sum of all counts),
-- the count of the newest sub-bucket, its number, birth (the instant of the first admission); then the counts of the n
-- sub-buckets before it, newest first. What each call changes stands in front, so that the rest is copied as it is; it
-- moves when the next sub-bucket begins. Those counts have 4 bytes each (I4), or 8 (d) once one of them needs more: a
-- script pays for every byte of a string, and 2^32 tokens in one sub-bucket are rare.
--
-- Why it never admits more than the amount in any window of W = n * width ms:
--   At instant t the sub-bucket is i = floor(t / width). All of i - n .. i are counted, the oldest one whole. They cover
--   [(i - n) * width, t], and (i - n) * width <= t - n * width = t - W: everything admitted in (t - W, t] is counted.
--   A call is admitted only if that count plus its own reservation is within the amount. Take any window of length W and
--   the last admission t in it: all its admissions lie in (t - W, t], hence their sum is within the amount. QED.
--   The price is that a reservation counts for up to W + width instead of W: at most 1 / n of throughput.
--   A refund lowers only the sub-bucket that was charged, or an older one after a clock step, which leaves sooner: the
--   count stays at or above the truth. An extra charge goes to the current sub-bucket, like an admission.
--   When the clock steps back, time stands still (at most one window): nothing expires early. A larger step back moves
--   the whole count into the present sub-bucket, where it stays a full window more: again never less than the truth.

local ring_count_formats = { [4] = '<I4', [8] = '<d' }

local function ring_count_bytes(value, n)
  return (#value - 32) / n
end

-- The same ring with 8 bytes per count.
local function ring_widen(value, n)
  local counts = { read('<' .. string.rep('I4', n), value, 33) }
  return sub(value, 1, 32) .. pack('<' .. string.rep('d', n), unpack(counts, 1, n))
end

-- Charges the current sub-bucket. Returns the ring to store (with an amount of 0 as it stands at \`now\`), its total and
-- its birth.
local function ring_add(value, width, n, now, amount)
  local index = floor(now / width)
  local total, count, last, birth = 0, 0, index, now
  if value then
    total, count, last, birth = read('<dddd', value)
    local steps = index - last
    if steps <= 0 and steps >= -n then
      -- The newest sub-bucket is the present one, as for most calls (or time stands still): two numbers change.
      total = total + amount
      return pack('<ddc0', total, count + amount, sub(value, 17)), total, birth
    elseif steps > 0 and steps <= n then
      if count >= 4294967296 and ring_count_bytes(value, n) == 4 then
        value = ring_widen(value, n)
      end
      local bytes = ring_count_bytes(value, n)
      local format = ring_count_formats[bytes]
      for place = n - steps + 1, n do
        total = total - read(format, value, 33 + (place - 1) * bytes)
      end
      total = total + amount
      return pack('<ddddc0', total, amount, index, birth, string.rep('\\0', (steps - 1) * bytes))
        .. pack(format, count) .. sub(value, 33, 32 + (n - steps) * bytes), total, birth
    elseif steps > 0 then
      total = 0
    end
    count = total
  end
  total = total + amount
  return pack('<ddddc0', total, count + amount, index, birth, string.rep('\\0', n * 4)), total, birth
end

-- Gives back to the sub-bucket of the instant \`at\`; nothing to do once that has left the window. Returns the ring to store.
local function ring_refund(value, width, n, now, at, amount)
  value = ring_add(value, width, n, now, 0)
  local total, count, last = read('<ddd', value)
  local place = last - floor(at / width)
  if place == 0 then
    local back = math.min(count, amount)
    return pack('<ddc0', total - back, count - back, sub(value, 17))
  elseif place < 0 or place > n then
    return value
  end
  local bytes = ring_count_bytes(value, n)
  local format = ring_count_formats[bytes]
  local offset = 32 + (place - 1) * bytes
  count = read(format, value, offset + 1)
  local back = math.min(count, amount)
  return pack('<dc0', total - back, sub(value, 9, offset)) .. pack(format, count - back) .. sub(value, offset + bytes + 1)
end

-- Milliseconds until at least \`excess\` has left the ring, which stands at \`now\`.
local function ring_wait(value, width, n, now, excess)
  local bytes = ring_count_bytes(value, n)
  local format = ring_count_formats[bytes]
  local _, newest, last = read('<ddd', value)
  local freed = 0
  for place = n, 0, -1 do
    freed = freed + (place == 0 and newest or read(format, value, 33 + (place - 1) * bytes))
    if freed >= excess then
      return (last - place + n + 1) * width - now
    end
  end
  return -1
end

-- Cold start: a new window opens with a third of the amount and grows to all of it over its first length, as a token
-- bucket would that starts at a third. (Once warm, a bucket of capacity N refilled N per window refuses nothing that the
-- sliding window admits, so no level needs to be stored: see docs/adr/0010.) Returns how much may be counted by \`now\`.
local function warm_amount(amount, birth, window_ms, now)
  local age = now - birth
  if age >= window_ms or amount >= 9007199254740992 then
    return amount
  end
  return math.min(amount, math.ceil(amount / 3) + floor(amount * math.max(0, age) / window_ms))
end

-- Milliseconds until a cold window has warmed to \`wanted\`.
local function warm_wait(amount, birth, window_ms, now, wanted)
  return math.max(0, birth + math.ceil((wanted - math.ceil(amount / 3)) * window_ms / amount) - now)
end
-- end ring
-- begin slot
-- Calls in flight of a scope: a little-endian double, like all counters (a number in decimal is the dearest thing that a
-- script can hand to Redis).
local function slot_add(value, by)
  local count = by
  if value then
    count = read('<d', value) + by
    if count < 0 then
      count = 0
    end
  end
  return pack('<d', count), count
end
-- end slot
-- begin lease
-- The lease record: one string. Byte 1 is the state: R reserved, S settled, V voided, X expired (charged by the reaper).
-- R and X go on with little-endian doubles, then the length of the descriptor, the descriptor and the event draft:
--   1 reserved at  2 expires at
--   3 observed? (0/1)   4 observed input   5 observed output   6, 7 observed cost (limbs)
--   8 lease ms
--   9 window input 10 window output 11 window output of extensions 12 instant and 13 amount of the last extension
--  14,15 budget input  16,17 budget output  18,19 budget cost (limbs)
-- Instants in ms. The caller of an admission sends the record ready made but for the two instants, so that descriptor and
-- draft go through no script: every string that a script makes is hashed byte by byte, and these are the longest. For the
-- same reason the others read the header alone, then the descriptor. A heartbeat rewrites numbers 2 to 7.
local lease_format = '<dddddddddddddddddddI4'
local lease_observed_format = '<dddddd'
local lease_observed_at = '9'
local lease_header_bytes = 1 + 19 * 8 + 4

-- The state and what follows it up to the descriptor; the state alone of a lease that has ended; '' when there is none.
local function lease_read(key)
  return call('GETRANGE', key, '0', '156')
end

local function lease_open(record)
  return { read(lease_format, record, 2) }
end

local function lease_descriptor(key, header)
  return cmsgpack.unpack(call('GETRANGE', key, '157', lease_header_bytes + header[20] - 1))
end
-- end lease
-- begin plan
-- A plan says what a call on one path, for one model, is counted in and checked against. It comes in two parts: the names
-- (msgpack, a flat list): per scope its concurrency, calendar and ring fields in that order, for the enterprise also the
-- policy version's; at the end the oldest day, week and month to keep. And the numbers, packed:
--   valid from, valid until, number of scopes; then per scope
--     numbers of concurrency, calendar and ring fields and of checks
--     per ring metric, width, n
--     per check kind (1 concurrency, 2 calendar, 3 ring), number of its field within the scope, metric, amount (limbs),
--     1 when hard, width and n of its ring
local plan_format = '<ddB'
local plan_scope_format = '<I2I2I2I2'
local plan_ring_format = '<BI4B'
local plan_check_format = '<BI2BddBI4B'
-- end plan
-- begin prune
-- Removes calendar fields of periods before the previous one. Called when a scope's first call of a month comes, so that
-- no job is needed; the previous period stays for the calls that were reserved in it.
local function prune(key, keep_day, keep_week, keep_month)
  local fields = redis.call('HKEYS', key)
  for i = 1, #fields do
    local period = string.match(fields[i], '^(%d%d%d%d%-[^|]+)')
    if period then
      local keep = keep_month
      if string.match(period, '^%d%d%d%d%-W%d%d\$') then
        keep = keep_week
      elseif string.match(period, '^%d%d%d%d%-%d%d%-%d%d\$') then
        keep = keep_day
      end
      if period < keep then
        redis.call('HDEL', key, fields[i])
      end
    end
  end
end
-- end prune

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
`,
  book: `#!lua
-- Books a call that this shard's data knows nothing of: its lease was lost with an earlier epoch, or it was admitted by
-- a local engine while Redis was away. Once per id, like a settlement.
--
-- KEYS[1]    epoch
-- KEYS[2]    lease record (becomes a tombstone)
-- KEYS[3]    sequence number of the shard's last event
-- KEYS[4]    outbox
-- ARGV[1]    epoch that the caller knows
-- ARGV[2]    key prefix of the shard's scope hashes
-- ARGV[3]    what was used, doubles: input, output, cost (limbs)
-- ARGV[4]    usage event, JSON
-- ARGV[5]    lease id
-- ARGV[6]    how long the tombstone is kept, ms
-- ARGV[7]    descriptor (see includes/release.lua) of the fields to charge, or '' when the counters have it already
--
-- Returns    E + epoch | state of the lease (it is known: settle instead, or nothing to do) | O + seq
-- Effects    calendar fields of the scope hashes, lease record (tombstone), sequence number, outbox. Sliding windows and
--            slots are left alone: the call is over.
-- begin builtins
-- A local is found at once, a field of a global by two look-ups at each use: 5 % of what a level of an admission costs.
local call, pack, read, sub, floor = redis.call, struct.pack, struct.unpack, string.sub, math.floor
-- end builtins
-- begin limbs
-- Exact integers. A Lua number is a double and exact to 2^53 only, so an amount is two limbs, high * 1e9 + low with
-- 0 <= low < 1e9: exact to 9e18 and beyond. A negative amount has a negative high limb and a low limb that is not.
local limb = 1000000000

local function add(high, low, by_high, by_low)
  low = low + by_low
  if low >= limb then
    return high + by_high + 1, low - limb
  end
  return high + by_high, low
end

local function subtract(high, low, by_high, by_low)
  low = low - by_low
  if low < 0 then
    return high - by_high - 1, low + limb
  end
  return high - by_high, low
end

local function exceeds(high, low, than_high, than_low)
  return high > than_high or (high == than_high and low > than_low)
end
-- end limbs
-- begin calendar
-- One calendar record per scope, period and model: little-endian doubles in one hash field, amounts in limbs.
--    1 requests    2, 3 input tokens    4, 5 output tokens    6, 7 cost (nano)    reserved by open leases
--    8 requests    9,10 input tokens   11,12 output tokens   13,14 cost           settled
-- A limit compares the sum of the two halves. They are kept apart because an admission changes the first alone.
local calendar_format = '<dddddddddddddd'
local calendar_half_bytes = 56

local empty

local function calendar_empty()
  empty = empty or string.rep('\\0', 2 * calendar_half_bytes)
  return empty
end

local function calendar_open(value)
  return { read(calendar_format, value or calendar_empty()) }
end

local function calendar_pack(record)
  return pack(calendar_format, unpack(record, 1, 14))
end

-- The packed record with more reserved. Runs at every level of every call: so no table, and the settled half is copied
-- as it is.
local function calendar_reserve(value, requests, in_high, in_low, out_high, out_low, cost_high, cost_low)
  local held, held_in_high, held_in_low, held_out_high, held_out_low, held_cost_high, held_cost_low =
    read('<ddddddd', value)
  in_high, in_low = add(held_in_high, held_in_low, in_high, in_low)
  out_high, out_low = add(held_out_high, held_out_low, out_high, out_low)
  cost_high, cost_low = add(held_cost_high, held_cost_low, cost_high, cost_low)
  return pack('<dddddddc0', held + requests, in_high, in_low, out_high, out_low, cost_high, cost_low,
    sub(value, calendar_half_bytes + 1))
end

-- Metric codes: 1 requests, 2 tokens (input + output), 3 input, 4 output, 5 cost. Returns the limbs of the metric in the
-- half of a packed record that begins after \`offset\` bytes: 0 for what is reserved, 56 for what is settled.
local function calendar_part(value, metric, offset)
  if metric == 5 then
    return read('<dd', value, offset + 41)
  elseif metric == 2 then
    local in_high, in_low, out_high, out_low = read('<dddd', value, offset + 9)
    return add(in_high, in_low, out_high, out_low)
  elseif metric == 3 then
    return read('<dd', value, offset + 9)
  elseif metric == 4 then
    return read('<dd', value, offset + 25)
  end
  local requests = read('<d', value, offset + 1)
  local high = floor(requests / limb)
  return high, requests - high * limb
end

-- Settled + reserved.
local function calendar_taken(value, metric)
  if metric == 5 then
    -- The most frequent by far.
    local held_high, held_low = read('<dd', value, 41)
    local high, low = read('<dd', value, 97)
    return add(high, low, held_high, held_low)
  end
  local high, low = calendar_part(value, metric, 0)
  return add(high, low, calendar_part(value, metric, calendar_half_bytes))
end
-- end calendar
-- begin lease
-- The lease record: one string. Byte 1 is the state: R reserved, S settled, V voided, X expired (charged by the reaper).
-- R and X go on with little-endian doubles, then the length of the descriptor, the descriptor and the event draft:
--   1 reserved at  2 expires at
--   3 observed? (0/1)   4 observed input   5 observed output   6, 7 observed cost (limbs)
--   8 lease ms
--   9 window input 10 window output 11 window output of extensions 12 instant and 13 amount of the last extension
--  14,15 budget input  16,17 budget output  18,19 budget cost (limbs)
-- Instants in ms. The caller of an admission sends the record ready made but for the two instants, so that descriptor and
-- draft go through no script: every string that a script makes is hashed byte by byte, and these are the longest. For the
-- same reason the others read the header alone, then the descriptor. A heartbeat rewrites numbers 2 to 7.
local lease_format = '<dddddddddddddddddddI4'
local lease_observed_format = '<dddddd'
local lease_observed_at = '9'
local lease_header_bytes = 1 + 19 * 8 + 4

-- The state and what follows it up to the descriptor; the state alone of a lease that has ended; '' when there is none.
local function lease_read(key)
  return call('GETRANGE', key, '0', '156')
end

local function lease_open(record)
  return { read(lease_format, record, 2) }
end

local function lease_descriptor(key, header)
  return cmsgpack.unpack(call('GETRANGE', key, '157', lease_header_bytes + header[20] - 1))
end
-- end lease

local known = call('MGET', KEYS[1], KEYS[2])
if known[1] ~= ARGV[1] then
  return 'E' .. (known[1] or '')
end
-- A void does not stand in the way: an admit without an answer is voided here before the local engine admits the call.
local state = known[2] and sub(known[2], 1, 1)
if state and state ~= 'V' then
  return state
end
if ARGV[7] ~= '' then
  local in_high, in_low, out_high, out_low, cost_high, cost_low = read('<dddddd', ARGV[3])
  local descriptor = cmsgpack.unpack(ARGV[7])
  local at = 2
  for _ = 1, descriptor[1] do
    local key = ARGV[2] .. descriptor[at]
    local slots, calendars, rings = descriptor[at + 1], descriptor[at + 2], descriptor[at + 3]
    for field = at + 4 + slots, at + 3 + slots + calendars do
      local c = calendar_open(call('HGET', key, descriptor[field]))
      c[8] = c[8] + 1
      c[9], c[10] = add(c[9], c[10], in_high, in_low)
      c[11], c[12] = add(c[11], c[12], out_high, out_low)
      c[13], c[14] = add(c[13], c[14], cost_high, cost_low)
      call('HSET', key, descriptor[field], calendar_pack(c))
    end
    at = at + 4 + slots + calendars + rings * 4
  end
end
call('SET', KEYS[2], 'S', 'PX', ARGV[6])
local seq = string.format('%.0f', call('INCR', KEYS[3]))
call('XADD', KEYS[4], '*', 'id', ARGV[5], 'seq', seq, 'epoch', ARGV[1], 'event', ARGV[4])
return 'O' .. seq
`,
  correct: `#!lua
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
-- begin builtins
-- A local is found at once, a field of a global by two look-ups at each use: 5 % of what a level of an admission costs.
local call, pack, read, sub, floor = redis.call, struct.pack, struct.unpack, string.sub, math.floor
-- end builtins
-- begin limbs
-- Exact integers. A Lua number is a double and exact to 2^53 only, so an amount is two limbs, high * 1e9 + low with
-- 0 <= low < 1e9: exact to 9e18 and beyond. A negative amount has a negative high limb and a low limb that is not.
local limb = 1000000000

local function add(high, low, by_high, by_low)
  low = low + by_low
  if low >= limb then
    return high + by_high + 1, low - limb
  end
  return high + by_high, low
end

local function subtract(high, low, by_high, by_low)
  low = low - by_low
  if low < 0 then
    return high - by_high - 1, low + limb
  end
  return high - by_high, low
end

local function exceeds(high, low, than_high, than_low)
  return high > than_high or (high == than_high and low > than_low)
end
-- end limbs
-- begin calendar
-- One calendar record per scope, period and model: little-endian doubles in one hash field, amounts in limbs.
--    1 requests    2, 3 input tokens    4, 5 output tokens    6, 7 cost (nano)    reserved by open leases
--    8 requests    9,10 input tokens   11,12 output tokens   13,14 cost           settled
-- A limit compares the sum of the two halves. They are kept apart because an admission changes the first alone.
local calendar_format = '<dddddddddddddd'
local calendar_half_bytes = 56

local empty

local function calendar_empty()
  empty = empty or string.rep('\\0', 2 * calendar_half_bytes)
  return empty
end

local function calendar_open(value)
  return { read(calendar_format, value or calendar_empty()) }
end

local function calendar_pack(record)
  return pack(calendar_format, unpack(record, 1, 14))
end

-- The packed record with more reserved. Runs at every level of every call: so no table, and the settled half is copied
-- as it is.
local function calendar_reserve(value, requests, in_high, in_low, out_high, out_low, cost_high, cost_low)
  local held, held_in_high, held_in_low, held_out_high, held_out_low, held_cost_high, held_cost_low =
    read('<ddddddd', value)
  in_high, in_low = add(held_in_high, held_in_low, in_high, in_low)
  out_high, out_low = add(held_out_high, held_out_low, out_high, out_low)
  cost_high, cost_low = add(held_cost_high, held_cost_low, cost_high, cost_low)
  return pack('<dddddddc0', held + requests, in_high, in_low, out_high, out_low, cost_high, cost_low,
    sub(value, calendar_half_bytes + 1))
end

-- Metric codes: 1 requests, 2 tokens (input + output), 3 input, 4 output, 5 cost. Returns the limbs of the metric in the
-- half of a packed record that begins after \`offset\` bytes: 0 for what is reserved, 56 for what is settled.
local function calendar_part(value, metric, offset)
  if metric == 5 then
    return read('<dd', value, offset + 41)
  elseif metric == 2 then
    local in_high, in_low, out_high, out_low = read('<dddd', value, offset + 9)
    return add(in_high, in_low, out_high, out_low)
  elseif metric == 3 then
    return read('<dd', value, offset + 9)
  elseif metric == 4 then
    return read('<dd', value, offset + 25)
  end
  local requests = read('<d', value, offset + 1)
  local high = floor(requests / limb)
  return high, requests - high * limb
end

-- Settled + reserved.
local function calendar_taken(value, metric)
  if metric == 5 then
    -- The most frequent by far.
    local held_high, held_low = read('<dd', value, 41)
    local high, low = read('<dd', value, 97)
    return add(high, low, held_high, held_low)
  end
  local high, low = calendar_part(value, metric, 0)
  return add(high, low, calendar_part(value, metric, calendar_half_bytes))
end
-- end calendar

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
`,
  declare: `#!lua
-- Declares a new epoch of a shard: from here on its counters are trusted on this server process.
--
-- KEYS[1]    epoch
-- KEYS[2]    meta of the shard (hash)
-- KEYS[3]    sequence number of the shard's last event
-- KEYS[4]    lock of who rebuilds the shard
-- ARGV[1]    new epoch
-- ARGV[2]    token in the lock
-- ARGV[3]    shard count of the installation
-- ARGV[4]    epoch and
-- ARGV[5]    sequence number up to which the counters hold the events of before
--
-- Returns    1, or 0 when the lock was lost meanwhile
-- Effects    epoch, meta; the sequence begins anew; the lock is released.

if redis.call('GET', KEYS[4]) ~= ARGV[2] then
  return 0
end
local run_id = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
redis.call('HSET', KEYS[2], 'run_id', run_id, 'shard_count', ARGV[3], 'counted_epoch', ARGV[4], 'counted_seq', ARGV[5])
redis.call('SET', KEYS[3], '0')
redis.call('SET', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[4])
return 1
`,
  expired: `#!lua flags=no-writes
-- Leases that have run out, longest ago first.
--
-- KEYS[1]    epoch
-- KEYS[2]    leases
-- ARGV[1]    epoch that the caller knows
-- ARGV[2]    at most how many
-- ARGV[3]    key prefix of the shard's lease records
--
-- Returns    E + epoch | array of id, record, id, record ... (record '' when there is none)
-- Effects    none.
-- begin clock
-- The store's clock in whole milliseconds since the Unix epoch; read once per script, so that one call sees one instant.
-- Tests replace this include with a movable clock; what ships has no way to set the time.
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
-- end clock

local epoch = redis.call('GET', KEYS[1])
if epoch ~= ARGV[1] then
  return 'E' .. (epoch or '')
end
local ids = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now_ms(), 'LIMIT', 0, ARGV[2])
local found = {}
for i = 1, #ids do
  found[i * 2 - 1] = ids[i]
  found[i * 2] = redis.call('GET', ARGV[3] .. ids[i]) or ''
end
return found
`,
  extend: `#!lua
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
-- begin builtins
-- A local is found at once, a field of a global by two look-ups at each use: 5 % of what a level of an admission costs.
local call, pack, read, sub, floor = redis.call, struct.pack, struct.unpack, string.sub, math.floor
-- end builtins
-- begin clock
-- The store's clock in whole milliseconds since the Unix epoch; read once per script, so that one call sees one instant.
-- Tests replace this include with a movable clock; what ships has no way to set the time.
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
-- end clock
-- begin limbs
-- Exact integers. A Lua number is a double and exact to 2^53 only, so an amount is two limbs, high * 1e9 + low with
-- 0 <= low < 1e9: exact to 9e18 and beyond. A negative amount has a negative high limb and a low limb that is not.
local limb = 1000000000

local function add(high, low, by_high, by_low)
  low = low + by_low
  if low >= limb then
    return high + by_high + 1, low - limb
  end
  return high + by_high, low
end

local function subtract(high, low, by_high, by_low)
  low = low - by_low
  if low < 0 then
    return high - by_high - 1, low + limb
  end
  return high - by_high, low
end

local function exceeds(high, low, than_high, than_low)
  return high > than_high or (high == than_high and low > than_low)
end
-- end limbs
-- begin calendar
-- One calendar record per scope, period and model: little-endian doubles in one hash field, amounts in limbs.
--    1 requests    2, 3 input tokens    4, 5 output tokens    6, 7 cost (nano)    reserved by open leases
--    8 requests    9,10 input tokens   11,12 output tokens   13,14 cost           settled
-- A limit compares the sum of the two halves. They are kept apart because an admission changes the first alone.
local calendar_format = '<dddddddddddddd'
local calendar_half_bytes = 56

local empty

local function calendar_empty()
  empty = empty or string.rep('\\0', 2 * calendar_half_bytes)
  return empty
end

local function calendar_open(value)
  return { read(calendar_format, value or calendar_empty()) }
end

local function calendar_pack(record)
  return pack(calendar_format, unpack(record, 1, 14))
end

-- The packed record with more reserved. Runs at every level of every call: so no table, and the settled half is copied
-- as it is.
local function calendar_reserve(value, requests, in_high, in_low, out_high, out_low, cost_high, cost_low)
  local held, held_in_high, held_in_low, held_out_high, held_out_low, held_cost_high, held_cost_low =
    read('<ddddddd', value)
  in_high, in_low = add(held_in_high, held_in_low, in_high, in_low)
  out_high, out_low = add(held_out_high, held_out_low, out_high, out_low)
  cost_high, cost_low = add(held_cost_high, held_cost_low, cost_high, cost_low)
  return pack('<dddddddc0', held + requests, in_high, in_low, out_high, out_low, cost_high, cost_low,
    sub(value, calendar_half_bytes + 1))
end

-- Metric codes: 1 requests, 2 tokens (input + output), 3 input, 4 output, 5 cost. Returns the limbs of the metric in the
-- half of a packed record that begins after \`offset\` bytes: 0 for what is reserved, 56 for what is settled.
local function calendar_part(value, metric, offset)
  if metric == 5 then
    return read('<dd', value, offset + 41)
  elseif metric == 2 then
    local in_high, in_low, out_high, out_low = read('<dddd', value, offset + 9)
    return add(in_high, in_low, out_high, out_low)
  elseif metric == 3 then
    return read('<dd', value, offset + 9)
  elseif metric == 4 then
    return read('<dd', value, offset + 25)
  end
  local requests = read('<d', value, offset + 1)
  local high = floor(requests / limb)
  return high, requests - high * limb
end

-- Settled + reserved.
local function calendar_taken(value, metric)
  if metric == 5 then
    -- The most frequent by far.
    local held_high, held_low = read('<dd', value, 41)
    local high, low = read('<dd', value, 97)
    return add(high, low, held_high, held_low)
  end
  local high, low = calendar_part(value, metric, 0)
  return add(high, low, calendar_part(value, metric, calendar_half_bytes))
end
-- end calendar
-- begin ring
-- A sliding window of \`n\` sub-buckets of \`width\` ms in one hash field. Little-endian doubles: total (the sum of all counts),
-- the count of the newest sub-bucket, its number, birth (the instant of the first admission); then the counts of the n
-- sub-buckets before it, newest first. What each call changes stands in front, so that the rest is copied as it is; it
-- moves when the next sub-bucket begins. Those counts have 4 bytes each (I4), or 8 (d) once one of them needs more: a
-- script pays for every byte of a string, and 2^32 tokens in one sub-bucket are rare.
--
-- Why it never admits more than the amount in any window of W = n * width ms:
--   At instant t the sub-bucket is i = floor(t / width). All of i - n .. i are counted, the oldest one whole. They cover
--   [(i - n) * width, t], and (i - n) * width <= t - n * width = t - W: everything admitted in (t - W, t] is counted.
--   A call is admitted only if that count plus its own reservation is within the amount. Take any window of length W and
--   the last admission t in it: all its admissions lie in (t - W, t], hence their sum is within the amount. QED.
--   The price is that a reservation counts for up to W + width instead of W: at most 1 / n of throughput.
--   A refund lowers only the sub-bucket that was charged, or an older one after a clock step, which leaves sooner: the
--   count stays at or above the truth. An extra charge goes to the current sub-bucket, like an admission.
--   When the clock steps back, time stands still (at most one window): nothing expires early. A larger step back moves
--   the whole count into the present sub-bucket, where it stays a full window more: again never less than the truth.

local ring_count_formats = { [4] = '<I4', [8] = '<d' }

local function ring_count_bytes(value, n)
  return (#value - 32) / n
end

-- The same ring with 8 bytes per count.
local function ring_widen(value, n)
  local counts = { read('<' .. string.rep('I4', n), value, 33) }
  return sub(value, 1, 32) .. pack('<' .. string.rep('d', n), unpack(counts, 1, n))
end

-- Charges the current sub-bucket. Returns the ring to store (with an amount of 0 as it stands at \`now\`), its total and
-- its birth.
local function ring_add(value, width, n, now, amount)
  local index = floor(now / width)
  local total, count, last, birth = 0, 0, index, now
  if value then
    total, count, last, birth = read('<dddd', value)
    local steps = index - last
    if steps <= 0 and steps >= -n then
      -- The newest sub-bucket is the present one, as for most calls (or time stands still): two numbers change.
      total = total + amount
      return pack('<ddc0', total, count + amount, sub(value, 17)), total, birth
    elseif steps > 0 and steps <= n then
      if count >= 4294967296 and ring_count_bytes(value, n) == 4 then
        value = ring_widen(value, n)
      end
      local bytes = ring_count_bytes(value, n)
      local format = ring_count_formats[bytes]
      for place = n - steps + 1, n do
        total = total - read(format, value, 33 + (place - 1) * bytes)
      end
      total = total + amount
      return pack('<ddddc0', total, amount, index, birth, string.rep('\\0', (steps - 1) * bytes))
        .. pack(format, count) .. sub(value, 33, 32 + (n - steps) * bytes), total, birth
    elseif steps > 0 then
      total = 0
    end
    count = total
  end
  total = total + amount
  return pack('<ddddc0', total, count + amount, index, birth, string.rep('\\0', n * 4)), total, birth
end

-- Gives back to the sub-bucket of the instant \`at\`; nothing to do once that has left the window. Returns the ring to store.
local function ring_refund(value, width, n, now, at, amount)
  value = ring_add(value, width, n, now, 0)
  local total, count, last = read('<ddd', value)
  local place = last - floor(at / width)
  if place == 0 then
    local back = math.min(count, amount)
    return pack('<ddc0', total - back, count - back, sub(value, 17))
  elseif place < 0 or place > n then
    return value
  end
  local bytes = ring_count_bytes(value, n)
  local format = ring_count_formats[bytes]
  local offset = 32 + (place - 1) * bytes
  count = read(format, value, offset + 1)
  local back = math.min(count, amount)
  return pack('<dc0', total - back, sub(value, 9, offset)) .. pack(format, count - back) .. sub(value, offset + bytes + 1)
end

-- Milliseconds until at least \`excess\` has left the ring, which stands at \`now\`.
local function ring_wait(value, width, n, now, excess)
  local bytes = ring_count_bytes(value, n)
  local format = ring_count_formats[bytes]
  local _, newest, last = read('<ddd', value)
  local freed = 0
  for place = n, 0, -1 do
    freed = freed + (place == 0 and newest or read(format, value, 33 + (place - 1) * bytes))
    if freed >= excess then
      return (last - place + n + 1) * width - now
    end
  end
  return -1
end

-- Cold start: a new window opens with a third of the amount and grows to all of it over its first length, as a token
-- bucket would that starts at a third. (Once warm, a bucket of capacity N refilled N per window refuses nothing that the
-- sliding window admits, so no level needs to be stored: see docs/adr/0010.) Returns how much may be counted by \`now\`.
local function warm_amount(amount, birth, window_ms, now)
  local age = now - birth
  if age >= window_ms or amount >= 9007199254740992 then
    return amount
  end
  return math.min(amount, math.ceil(amount / 3) + floor(amount * math.max(0, age) / window_ms))
end

-- Milliseconds until a cold window has warmed to \`wanted\`.
local function warm_wait(amount, birth, window_ms, now, wanted)
  return math.max(0, birth + math.ceil((wanted - math.ceil(amount / 3)) * window_ms / amount) - now)
end
-- end ring
-- begin lease
-- The lease record: one string. Byte 1 is the state: R reserved, S settled, V voided, X expired (charged by the reaper).
-- R and X go on with little-endian doubles, then the length of the descriptor, the descriptor and the event draft:
--   1 reserved at  2 expires at
--   3 observed? (0/1)   4 observed input   5 observed output   6, 7 observed cost (limbs)
--   8 lease ms
--   9 window input 10 window output 11 window output of extensions 12 instant and 13 amount of the last extension
--  14,15 budget input  16,17 budget output  18,19 budget cost (limbs)
-- Instants in ms. The caller of an admission sends the record ready made but for the two instants, so that descriptor and
-- draft go through no script: every string that a script makes is hashed byte by byte, and these are the longest. For the
-- same reason the others read the header alone, then the descriptor. A heartbeat rewrites numbers 2 to 7.
local lease_format = '<dddddddddddddddddddI4'
local lease_observed_format = '<dddddd'
local lease_observed_at = '9'
local lease_header_bytes = 1 + 19 * 8 + 4

-- The state and what follows it up to the descriptor; the state alone of a lease that has ended; '' when there is none.
local function lease_read(key)
  return call('GETRANGE', key, '0', '156')
end

local function lease_open(record)
  return { read(lease_format, record, 2) }
end

local function lease_descriptor(key, header)
  return cmsgpack.unpack(call('GETRANGE', key, '157', lease_header_bytes + header[20] - 1))
end
-- end lease
-- begin plan
-- A plan says what a call on one path, for one model, is counted in and checked against. It comes in two parts: the names
-- (msgpack, a flat list): per scope its concurrency, calendar and ring fields in that order, for the enterprise also the
-- policy version's; at the end the oldest day, week and month to keep. And the numbers, packed:
--   valid from, valid until, number of scopes; then per scope
--     numbers of concurrency, calendar and ring fields and of checks
--     per ring metric, width, n
--     per check kind (1 concurrency, 2 calendar, 3 ring), number of its field within the scope, metric, amount (limbs),
--     1 when hard, width and n of its ring
local plan_format = '<ddB'
local plan_scope_format = '<I2I2I2I2'
local plan_ring_format = '<BI4B'
local plan_check_format = '<BI2BddBI4B'
-- end plan

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
`,
  fence: `#!lua
-- What a caller needs to know before it trusts a shard: its epoch, and whether this server process is the one that the
-- epoch was declared on. A restarted or failed-over server may have lost its last seconds.
--
-- KEYS[1]    epoch
-- KEYS[2]    meta of the shard (hash)
-- KEYS[3]    sequence number of the shard's last event
--
-- Returns    array: epoch or '', '1' when the epoch was declared on this server process, else '0', shard count or '',
--            run id of this server process, sequence number of the shard's last event, and the epoch and sequence
--            number up to which the counters hold the events of earlier epochs
-- Effects    none.

local run_id = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
local meta = redis.call('HMGET', KEYS[2], 'run_id', 'shard_count', 'counted_epoch', 'counted_seq')
return {
  redis.call('GET', KEYS[1]) or '',
  meta[1] == run_id and '1' or '0',
  meta[2] or '',
  run_id,
  redis.call('GET', KEYS[3]) or '0',
  meta[3] or '',
  meta[4] or '0',
}
`,
  hold: `#!lua
-- Keeps, or gives up, the lock of who rebuilds a shard; only if it is still the caller's.
--
-- KEYS[1]    lock
-- ARGV[1]    token in the lock
-- ARGV[2]    how much longer to keep it, ms; 0 gives it up
--
-- Returns    1, or 0 when the lock is not the caller's
-- Effects    the lock.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
if ARGV[2] == '0' then
  redis.call('DEL', KEYS[1])
else
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
`,
  peek: `#!lua flags=no-writes
-- Counters of several scopes at one instant.
--
-- KEYS[1]    epoch
-- KEYS[2..]  scope hashes
-- ARGV[1]    epoch that the caller knows
-- ARGV[2]    doubles: valid from, valid until (of the calendar fields)
-- ARGV[3..]  per scope its fields, msgpack
--
-- Returns    E + epoch | P + now | array of now (doubles) and per scope the values of its fields
-- Effects    none.
-- begin clock
-- The store's clock in whole milliseconds since the Unix epoch; read once per script, so that one call sees one instant.
-- Tests replace this include with a movable clock; what ships has no way to set the time.
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
-- end clock

local epoch = redis.call('GET', KEYS[1])
if epoch ~= ARGV[1] then
  return 'E' .. (epoch or '')
end
local now = now_ms()
local from, till = struct.unpack('<dd', ARGV[2])
if now < from or now >= till then
  return 'P' .. struct.pack('<d', now)
end
local result = { struct.pack('<d', now) }
for i = 2, #KEYS do
  result[i] = redis.call('HMGET', KEYS[i], unpack(cmsgpack.unpack(ARGV[i + 1])))
end
return result
`,
  publish: `#!lua
-- Writes an enterprise's policy documents, bumps its version and announces it.
--
-- KEYS[1]    scope hash of the enterprise (holds the version, so that admit needs no extra read)
-- KEYS[2]    documents of the enterprise (hash)
-- ARGV[1]    enterprise id
-- ARGV[2]    channel
-- ARGV[3]    '1' replaces all documents, '0' changes some
-- ARGV[4]    enterprise document or ''
-- ARGV[5]    number of node documents; then id and document of each; then ids of nodes to remove
--
-- Returns    the new version
-- Effects    both hashes, a message "enterprise version" on the channel.
-- begin clock
-- The store's clock in whole milliseconds since the Unix epoch; read once per script, so that one call sees one instant.
-- Tests replace this include with a movable clock; what ships has no way to set the time.
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
-- end clock

-- Versions grow with the clock, so that they never repeat, even when Redis has lost the last one.
local before = tonumber(redis.call('HGET', KEYS[1], 'v') or '0')
local version = string.format('%.0f', math.max(before + 1, now_ms()))
if ARGV[3] == '1' then
  redis.call('DEL', KEYS[2])
end
if ARGV[4] ~= '' then
  redis.call('HSET', KEYS[2], 'enterprise', ARGV[4], 'enterprise_version', version)
end
local nodes = tonumber(ARGV[5])
for i = 1, nodes do
  redis.call('HSET', KEYS[2], 'node:' .. ARGV[4 + 2 * i], ARGV[5 + 2 * i])
end
for i = 6 + 2 * nodes, #ARGV do
  redis.call('HDEL', KEYS[2], 'node:' .. ARGV[i])
end
redis.call('HSET', KEYS[1], 'v', version)
redis.call('PUBLISH', ARGV[2], ARGV[1] .. ' ' .. version)
return version
`,
  renew: `#!lua
-- Heartbeats of many leases of one shard.
--
-- KEYS[1]    epoch
-- KEYS[2]    leases
-- KEYS[3..]  lease records
-- ARGV[1]    epoch that the caller knows
-- ARGV[2]    doubles per lease: lease ms, observed? (0/1), observed input, output, observed cost (limbs)
-- ARGV[3..]  lease ids
--
-- Returns    E + epoch | A + one character per lease, 1 when it is alive, else 0
-- Effects    lease records, leases.
-- begin builtins
-- A local is found at once, a field of a global by two look-ups at each use: 5 % of what a level of an admission costs.
local call, pack, read, sub, floor = redis.call, struct.pack, struct.unpack, string.sub, math.floor
-- end builtins
-- begin clock
-- The store's clock in whole milliseconds since the Unix epoch; read once per script, so that one call sees one instant.
-- Tests replace this include with a movable clock; what ships has no way to set the time.
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
-- end clock
-- begin lease
-- The lease record: one string. Byte 1 is the state: R reserved, S settled, V voided, X expired (charged by the reaper).
-- R and X go on with little-endian doubles, then the length of the descriptor, the descriptor and the event draft:
--   1 reserved at  2 expires at
--   3 observed? (0/1)   4 observed input   5 observed output   6, 7 observed cost (limbs)
--   8 lease ms
--   9 window input 10 window output 11 window output of extensions 12 instant and 13 amount of the last extension
--  14,15 budget input  16,17 budget output  18,19 budget cost (limbs)
-- Instants in ms. The caller of an admission sends the record ready made but for the two instants, so that descriptor and
-- draft go through no script: every string that a script makes is hashed byte by byte, and these are the longest. For the
-- same reason the others read the header alone, then the descriptor. A heartbeat rewrites numbers 2 to 7.
local lease_format = '<dddddddddddddddddddI4'
local lease_observed_format = '<dddddd'
local lease_observed_at = '9'
local lease_header_bytes = 1 + 19 * 8 + 4

-- The state and what follows it up to the descriptor; the state alone of a lease that has ended; '' when there is none.
local function lease_read(key)
  return call('GETRANGE', key, '0', '156')
end

local function lease_open(record)
  return { read(lease_format, record, 2) }
end

local function lease_descriptor(key, header)
  return cmsgpack.unpack(call('GETRANGE', key, '157', lease_header_bytes + header[20] - 1))
end
-- end lease

local epoch = call('GET', KEYS[1])
if epoch ~= ARGV[1] then
  return 'E' .. (epoch or '')
end
local now = now_ms()
local alive = {}
for i = 3, #KEYS do
  local number = i - 2
  if call('GETRANGE', KEYS[i], '0', '0') == 'R' then
    local lease_ms, observed, input, output, cost_high, cost_low =
      read(lease_observed_format, ARGV[2], (number - 1) * 48 + 1)
    local expires_at = now + lease_ms
    if observed == 1 then
      call('SETRANGE', KEYS[i], lease_observed_at,
        pack(lease_observed_format, expires_at, 1, input, output, cost_high, cost_low))
    else
      call('SETRANGE', KEYS[i], lease_observed_at, pack('<d', expires_at))
    end
    call('ZADD', KEYS[2], 'XX', expires_at, ARGV[number + 2])
    alive[number] = '1'
  else
    alive[number] = '0'
  end
end
return 'A' .. table.concat(alive)
`,
  resolve: `#!lua flags=no-writes
-- The documents on a user's path, all of one version.
--
-- KEYS[1]    scope hash of the enterprise
-- KEYS[2]    documents of the enterprise
-- ARGV[1]    user id
-- ARGV[2]    version of the enterprise document that the caller has
-- ARGV[3]    how many nodes a path can have
--
-- Returns    array: version or '', version of the enterprise document or '', that document ('' when the caller has it),
--            then the node documents, user first; fewer than the path has when one is missing
-- Effects    none.

local version = redis.call('HGET', KEYS[1], 'v') or ''
local enterprise = redis.call('HMGET', KEYS[2], 'enterprise_version', 'enterprise')
local result = { version, enterprise[1] or '', '' }
if enterprise[1] and enterprise[1] ~= ARGV[2] then
  result[3] = enterprise[2]
end
local id = ARGV[1]
for _ = 1, tonumber(ARGV[3]) do
  local document = redis.call('HGET', KEYS[2], 'node:' .. id)
  if not document then
    break
  end
  result[#result + 1] = document
  id = cjson.decode(document).parentId
  if id == cjson.null then
    break
  end
end
return result
`,
  seed: `#!lua
-- Raises calendar counters to what the ledger has booked. What is settled here is never lowered: the ledger lags, and a
-- counter that was not kept for a while has gaps; the larger of the two is nearer to the truth. Reservations stay.
--
-- KEYS[1]    scope hash
-- ARGV[1]    number of records; then field and record (see includes/calendar.lua) of each
--
-- Returns    number of fields written
-- Effects    scope hash.
-- begin builtins
-- A local is found at once, a field of a global by two look-ups at each use: 5 % of what a level of an admission costs.
local call, pack, read, sub, floor = redis.call, struct.pack, struct.unpack, string.sub, math.floor
-- end builtins
-- begin limbs
-- Exact integers. A Lua number is a double and exact to 2^53 only, so an amount is two limbs, high * 1e9 + low with
-- 0 <= low < 1e9: exact to 9e18 and beyond. A negative amount has a negative high limb and a low limb that is not.
local limb = 1000000000

local function add(high, low, by_high, by_low)
  low = low + by_low
  if low >= limb then
    return high + by_high + 1, low - limb
  end
  return high + by_high, low
end

local function subtract(high, low, by_high, by_low)
  low = low - by_low
  if low < 0 then
    return high - by_high - 1, low + limb
  end
  return high - by_high, low
end

local function exceeds(high, low, than_high, than_low)
  return high > than_high or (high == than_high and low > than_low)
end
-- end limbs
-- begin calendar
-- One calendar record per scope, period and model: little-endian doubles in one hash field, amounts in limbs.
--    1 requests    2, 3 input tokens    4, 5 output tokens    6, 7 cost (nano)    reserved by open leases
--    8 requests    9,10 input tokens   11,12 output tokens   13,14 cost           settled
-- A limit compares the sum of the two halves. They are kept apart because an admission changes the first alone.
local calendar_format = '<dddddddddddddd'
local calendar_half_bytes = 56

local empty

local function calendar_empty()
  empty = empty or string.rep('\\0', 2 * calendar_half_bytes)
  return empty
end

local function calendar_open(value)
  return { read(calendar_format, value or calendar_empty()) }
end

local function calendar_pack(record)
  return pack(calendar_format, unpack(record, 1, 14))
end

-- The packed record with more reserved. Runs at every level of every call: so no table, and the settled half is copied
-- as it is.
local function calendar_reserve(value, requests, in_high, in_low, out_high, out_low, cost_high, cost_low)
  local held, held_in_high, held_in_low, held_out_high, held_out_low, held_cost_high, held_cost_low =
    read('<ddddddd', value)
  in_high, in_low = add(held_in_high, held_in_low, in_high, in_low)
  out_high, out_low = add(held_out_high, held_out_low, out_high, out_low)
  cost_high, cost_low = add(held_cost_high, held_cost_low, cost_high, cost_low)
  return pack('<dddddddc0', held + requests, in_high, in_low, out_high, out_low, cost_high, cost_low,
    sub(value, calendar_half_bytes + 1))
end

-- Metric codes: 1 requests, 2 tokens (input + output), 3 input, 4 output, 5 cost. Returns the limbs of the metric in the
-- half of a packed record that begins after \`offset\` bytes: 0 for what is reserved, 56 for what is settled.
local function calendar_part(value, metric, offset)
  if metric == 5 then
    return read('<dd', value, offset + 41)
  elseif metric == 2 then
    local in_high, in_low, out_high, out_low = read('<dddd', value, offset + 9)
    return add(in_high, in_low, out_high, out_low)
  elseif metric == 3 then
    return read('<dd', value, offset + 9)
  elseif metric == 4 then
    return read('<dd', value, offset + 25)
  end
  local requests = read('<d', value, offset + 1)
  local high = floor(requests / limb)
  return high, requests - high * limb
end

-- Settled + reserved.
local function calendar_taken(value, metric)
  if metric == 5 then
    -- The most frequent by far.
    local held_high, held_low = read('<dd', value, 41)
    local high, low = read('<dd', value, 97)
    return add(high, low, held_high, held_low)
  end
  local high, low = calendar_part(value, metric, 0)
  return add(high, low, calendar_part(value, metric, calendar_half_bytes))
end
-- end calendar

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
`,
  settle: `#!lua
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
-- begin builtins
-- A local is found at once, a field of a global by two look-ups at each use: 5 % of what a level of an admission costs.
local call, pack, read, sub, floor = redis.call, struct.pack, struct.unpack, string.sub, math.floor
-- end builtins
-- begin clock
-- The store's clock in whole milliseconds since the Unix epoch; read once per script, so that one call sees one instant.
-- Tests replace this include with a movable clock; what ships has no way to set the time.
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
-- end clock
-- begin limbs
-- Exact integers. A Lua number is a double and exact to 2^53 only, so an amount is two limbs, high * 1e9 + low with
-- 0 <= low < 1e9: exact to 9e18 and beyond. A negative amount has a negative high limb and a low limb that is not.
local limb = 1000000000

local function add(high, low, by_high, by_low)
  low = low + by_low
  if low >= limb then
    return high + by_high + 1, low - limb
  end
  return high + by_high, low
end

local function subtract(high, low, by_high, by_low)
  low = low - by_low
  if low < 0 then
    return high - by_high - 1, low + limb
  end
  return high - by_high, low
end

local function exceeds(high, low, than_high, than_low)
  return high > than_high or (high == than_high and low > than_low)
end
-- end limbs
-- begin calendar
-- One calendar record per scope, period and model: little-endian doubles in one hash field, amounts in limbs.
--    1 requests    2, 3 input tokens    4, 5 output tokens    6, 7 cost (nano)    reserved by open leases
--    8 requests    9,10 input tokens   11,12 output tokens   13,14 cost           settled
-- A limit compares the sum of the two halves. They are kept apart because an admission changes the first alone.
local calendar_format = '<dddddddddddddd'
local calendar_half_bytes = 56

local empty

local function calendar_empty()
  empty = empty or string.rep('\\0', 2 * calendar_half_bytes)
  return empty
end

local function calendar_open(value)
  return { read(calendar_format, value or calendar_empty()) }
end

local function calendar_pack(record)
  return pack(calendar_format, unpack(record, 1, 14))
end

-- The packed record with more reserved. Runs at every level of every call: so no table, and the settled half is copied
-- as it is.
local function calendar_reserve(value, requests, in_high, in_low, out_high, out_low, cost_high, cost_low)
  local held, held_in_high, held_in_low, held_out_high, held_out_low, held_cost_high, held_cost_low =
    read('<ddddddd', value)
  in_high, in_low = add(held_in_high, held_in_low, in_high, in_low)
  out_high, out_low = add(held_out_high, held_out_low, out_high, out_low)
  cost_high, cost_low = add(held_cost_high, held_cost_low, cost_high, cost_low)
  return pack('<dddddddc0', held + requests, in_high, in_low, out_high, out_low, cost_high, cost_low,
    sub(value, calendar_half_bytes + 1))
end

-- Metric codes: 1 requests, 2 tokens (input + output), 3 input, 4 output, 5 cost. Returns the limbs of the metric in the
-- half of a packed record that begins after \`offset\` bytes: 0 for what is reserved, 56 for what is settled.
local function calendar_part(value, metric, offset)
  if metric == 5 then
    return read('<dd', value, offset + 41)
  elseif metric == 2 then
    local in_high, in_low, out_high, out_low = read('<dddd', value, offset + 9)
    return add(in_high, in_low, out_high, out_low)
  elseif metric == 3 then
    return read('<dd', value, offset + 9)
  elseif metric == 4 then
    return read('<dd', value, offset + 25)
  end
  local requests = read('<d', value, offset + 1)
  local high = floor(requests / limb)
  return high, requests - high * limb
end

-- Settled + reserved.
local function calendar_taken(value, metric)
  if metric == 5 then
    -- The most frequent by far.
    local held_high, held_low = read('<dd', value, 41)
    local high, low = read('<dd', value, 97)
    return add(high, low, held_high, held_low)
  end
  local high, low = calendar_part(value, metric, 0)
  return add(high, low, calendar_part(value, metric, calendar_half_bytes))
end
-- end calendar
-- begin ring
-- A sliding window of \`n\` sub-buckets of \`width\` ms in one hash field. Little-endian doubles: total (the sum of all counts),
-- the count of the newest sub-bucket, its number, birth (the instant of the first admission); then the counts of the n
-- sub-buckets before it, newest first. What each call changes stands in front, so that the rest is copied as it is; it
-- moves when the next sub-bucket begins. Those counts have 4 bytes each (I4), or 8 (d) once one of them needs more: a
-- script pays for every byte of a string, and 2^32 tokens in one sub-bucket are rare.
--
-- Why it never admits more than the amount in any window of W = n * width ms:
--   At instant t the sub-bucket is i = floor(t / width). All of i - n .. i are counted, the oldest one whole. They cover
--   [(i - n) * width, t], and (i - n) * width <= t - n * width = t - W: everything admitted in (t - W, t] is counted.
--   A call is admitted only if that count plus its own reservation is within the amount. Take any window of length W and
--   the last admission t in it: all its admissions lie in (t - W, t], hence their sum is within the amount. QED.
--   The price is that a reservation counts for up to W + width instead of W: at most 1 / n of throughput.
--   A refund lowers only the sub-bucket that was charged, or an older one after a clock step, which leaves sooner: the
--   count stays at or above the truth. An extra charge goes to the current sub-bucket, like an admission.
--   When the clock steps back, time stands still (at most one window): nothing expires early. A larger step back moves
--   the whole count into the present sub-bucket, where it stays a full window more: again never less than the truth.

local ring_count_formats = { [4] = '<I4', [8] = '<d' }

local function ring_count_bytes(value, n)
  return (#value - 32) / n
end

-- The same ring with 8 bytes per count.
local function ring_widen(value, n)
  local counts = { read('<' .. string.rep('I4', n), value, 33) }
  return sub(value, 1, 32) .. pack('<' .. string.rep('d', n), unpack(counts, 1, n))
end

-- Charges the current sub-bucket. Returns the ring to store (with an amount of 0 as it stands at \`now\`), its total and
-- its birth.
local function ring_add(value, width, n, now, amount)
  local index = floor(now / width)
  local total, count, last, birth = 0, 0, index, now
  if value then
    total, count, last, birth = read('<dddd', value)
    local steps = index - last
    if steps <= 0 and steps >= -n then
      -- The newest sub-bucket is the present one, as for most calls (or time stands still): two numbers change.
      total = total + amount
      return pack('<ddc0', total, count + amount, sub(value, 17)), total, birth
    elseif steps > 0 and steps <= n then
      if count >= 4294967296 and ring_count_bytes(value, n) == 4 then
        value = ring_widen(value, n)
      end
      local bytes = ring_count_bytes(value, n)
      local format = ring_count_formats[bytes]
      for place = n - steps + 1, n do
        total = total - read(format, value, 33 + (place - 1) * bytes)
      end
      total = total + amount
      return pack('<ddddc0', total, amount, index, birth, string.rep('\\0', (steps - 1) * bytes))
        .. pack(format, count) .. sub(value, 33, 32 + (n - steps) * bytes), total, birth
    elseif steps > 0 then
      total = 0
    end
    count = total
  end
  total = total + amount
  return pack('<ddddc0', total, count + amount, index, birth, string.rep('\\0', n * 4)), total, birth
end

-- Gives back to the sub-bucket of the instant \`at\`; nothing to do once that has left the window. Returns the ring to store.
local function ring_refund(value, width, n, now, at, amount)
  value = ring_add(value, width, n, now, 0)
  local total, count, last = read('<ddd', value)
  local place = last - floor(at / width)
  if place == 0 then
    local back = math.min(count, amount)
    return pack('<ddc0', total - back, count - back, sub(value, 17))
  elseif place < 0 or place > n then
    return value
  end
  local bytes = ring_count_bytes(value, n)
  local format = ring_count_formats[bytes]
  local offset = 32 + (place - 1) * bytes
  count = read(format, value, offset + 1)
  local back = math.min(count, amount)
  return pack('<dc0', total - back, sub(value, 9, offset)) .. pack(format, count - back) .. sub(value, offset + bytes + 1)
end

-- Milliseconds until at least \`excess\` has left the ring, which stands at \`now\`.
local function ring_wait(value, width, n, now, excess)
  local bytes = ring_count_bytes(value, n)
  local format = ring_count_formats[bytes]
  local _, newest, last = read('<ddd', value)
  local freed = 0
  for place = n, 0, -1 do
    freed = freed + (place == 0 and newest or read(format, value, 33 + (place - 1) * bytes))
    if freed >= excess then
      return (last - place + n + 1) * width - now
    end
  end
  return -1
end

-- Cold start: a new window opens with a third of the amount and grows to all of it over its first length, as a token
-- bucket would that starts at a third. (Once warm, a bucket of capacity N refilled N per window refuses nothing that the
-- sliding window admits, so no level needs to be stored: see docs/adr/0010.) Returns how much may be counted by \`now\`.
local function warm_amount(amount, birth, window_ms, now)
  local age = now - birth
  if age >= window_ms or amount >= 9007199254740992 then
    return amount
  end
  return math.min(amount, math.ceil(amount / 3) + floor(amount * math.max(0, age) / window_ms))
end

-- Milliseconds until a cold window has warmed to \`wanted\`.
local function warm_wait(amount, birth, window_ms, now, wanted)
  return math.max(0, birth + math.ceil((wanted - math.ceil(amount / 3)) * window_ms / amount) - now)
end
-- end ring
-- begin slot
-- Calls in flight of a scope: a little-endian double, like all counters (a number in decimal is the dearest thing that a
-- script can hand to Redis).
local function slot_add(value, by)
  local count = by
  if value then
    count = read('<d', value) + by
    if count < 0 then
      count = 0
    end
  end
  return pack('<d', count), count
end
-- end slot
-- begin lease
-- The lease record: one string. Byte 1 is the state: R reserved, S settled, V voided, X expired (charged by the reaper).
-- R and X go on with little-endian doubles, then the length of the descriptor, the descriptor and the event draft:
--   1 reserved at  2 expires at
--   3 observed? (0/1)   4 observed input   5 observed output   6, 7 observed cost (limbs)
--   8 lease ms
--   9 window input 10 window output 11 window output of extensions 12 instant and 13 amount of the last extension
--  14,15 budget input  16,17 budget output  18,19 budget cost (limbs)
-- Instants in ms. The caller of an admission sends the record ready made but for the two instants, so that descriptor and
-- draft go through no script: every string that a script makes is hashed byte by byte, and these are the longest. For the
-- same reason the others read the header alone, then the descriptor. A heartbeat rewrites numbers 2 to 7.
local lease_format = '<dddddddddddddddddddI4'
local lease_observed_format = '<dddddd'
local lease_observed_at = '9'
local lease_header_bytes = 1 + 19 * 8 + 4

-- The state and what follows it up to the descriptor; the state alone of a lease that has ended; '' when there is none.
local function lease_read(key)
  return call('GETRANGE', key, '0', '156')
end

local function lease_open(record)
  return { read(lease_format, record, 2) }
end

local function lease_descriptor(key, header)
  return cmsgpack.unpack(call('GETRANGE', key, '157', lease_header_bytes + header[20] - 1))
end
-- end lease
-- begin release
-- Ends a reservation at every level: corrects all counters from what was reserved to what was used and frees the slot.
-- The descriptor in the lease record says which fields were charged: number of scopes, then per scope its id, the
-- numbers of concurrency, calendar and ring fields, the fields in that order, and per ring its metric, width and n.
-- Limits that came or went since the reservation change nothing here.
-- \`used\` has input and output tokens and cost as limbs and requests (1, or 0 for a void).
local function release(scope_prefix, descriptor, header, now, used)
  local held_in_high, held_in_low, held_out_high, held_out_low, held_cost_high, held_cost_low =
    unpack(header, 14, 19)
  local requests = used.requests
  local input = used.in_high * limb + used.in_low - header[9]
  local output = used.out_high * limb + used.out_low - header[10] - header[11]
  local window_change = { requests - 1, input + output, input, output }
  local at = 2
  for _ = 1, descriptor[1] do
    local key = scope_prefix .. descriptor[at]
    local slots, calendars, rings = descriptor[at + 1], descriptor[at + 2], descriptor[at + 3]
    at = at + 4
    local fields = slots + calendars + rings
    local values = call('HMGET', key, unpack(descriptor, at, at + fields - 1))
    local first = at - 1
    at = at + fields
    local set, length = {}, 0
    for slot = 1, slots do
      if values[slot] then
        set[length + 1], set[length + 2] = descriptor[first + slot], slot_add(values[slot], -1)
        length = length + 2
      end
    end
    for field = slots + 1, slots + calendars do
      -- A field that is gone belongs to a period that is over and booked.
      if values[field] then
        local c = calendar_open(values[field])
        c[1] = c[1] - 1
        c[2], c[3] = subtract(c[2], c[3], held_in_high, held_in_low)
        c[4], c[5] = subtract(c[4], c[5], held_out_high, held_out_low)
        c[6], c[7] = subtract(c[6], c[7], held_cost_high, held_cost_low)
        c[8] = c[8] + requests
        c[9], c[10] = add(c[9], c[10], used.in_high, used.in_low)
        c[11], c[12] = add(c[11], c[12], used.out_high, used.out_low)
        c[13], c[14] = add(c[13], c[14], used.cost_high, used.cost_low)
        set[length + 1], set[length + 2] = descriptor[first + field], calendar_pack(c)
        length = length + 2
      end
    end
    for ring = 1, rings do
      local metric, width, n = descriptor[at], descriptor[at + 1], descriptor[at + 2]
      at = at + 3
      local field = slots + calendars + ring
      local value = values[field]
      local change = window_change[metric]
      if value and change ~= 0 then
        if change > 0 then
          value = ring_add(value, width, n, now, change)
        else
          -- What the last extension took comes back first, to where it was charged; the rest to the reservation's.
          local from_extension = 0
          if metric == 2 or metric == 4 then
            from_extension = math.min(-change, header[13])
          end
          if from_extension > 0 then
            value = ring_refund(value, width, n, now, header[12], from_extension)
          end
          value = ring_refund(value, width, n, now, header[1], -change - from_extension)
        end
        set[length + 1], set[length + 2] = descriptor[first + field], value
        length = length + 2
      end
    end
    if length > 0 then
      call('HSET', key, unpack(set))
    end
  end
end
-- end release

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
`,
  void: `#!lua
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
-- begin builtins
-- A local is found at once, a field of a global by two look-ups at each use: 5 % of what a level of an admission costs.
local call, pack, read, sub, floor = redis.call, struct.pack, struct.unpack, string.sub, math.floor
-- end builtins
-- begin clock
-- The store's clock in whole milliseconds since the Unix epoch; read once per script, so that one call sees one instant.
-- Tests replace this include with a movable clock; what ships has no way to set the time.
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
-- end clock
-- begin limbs
-- Exact integers. A Lua number is a double and exact to 2^53 only, so an amount is two limbs, high * 1e9 + low with
-- 0 <= low < 1e9: exact to 9e18 and beyond. A negative amount has a negative high limb and a low limb that is not.
local limb = 1000000000

local function add(high, low, by_high, by_low)
  low = low + by_low
  if low >= limb then
    return high + by_high + 1, low - limb
  end
  return high + by_high, low
end

local function subtract(high, low, by_high, by_low)
  low = low - by_low
  if low < 0 then
    return high - by_high - 1, low + limb
  end
  return high - by_high, low
end

local function exceeds(high, low, than_high, than_low)
  return high > than_high or (high == than_high and low > than_low)
end
-- end limbs
-- begin calendar
-- One calendar record per scope, period and model: little-endian doubles in one hash field, amounts in limbs.
--    1 requests    2, 3 input tokens    4, 5 output tokens    6, 7 cost (nano)    reserved by open leases
--    8 requests    9,10 input tokens   11,12 output tokens   13,14 cost           settled
-- A limit compares the sum of the two halves. They are kept apart because an admission changes the first alone.
local calendar_format = '<dddddddddddddd'
local calendar_half_bytes = 56

local empty

local function calendar_empty()
  empty = empty or string.rep('\\0', 2 * calendar_half_bytes)
  return empty
end

local function calendar_open(value)
  return { read(calendar_format, value or calendar_empty()) }
end

local function calendar_pack(record)
  return pack(calendar_format, unpack(record, 1, 14))
end

-- The packed record with more reserved. Runs at every level of every call: so no table, and the settled half is copied
-- as it is.
local function calendar_reserve(value, requests, in_high, in_low, out_high, out_low, cost_high, cost_low)
  local held, held_in_high, held_in_low, held_out_high, held_out_low, held_cost_high, held_cost_low =
    read('<ddddddd', value)
  in_high, in_low = add(held_in_high, held_in_low, in_high, in_low)
  out_high, out_low = add(held_out_high, held_out_low, out_high, out_low)
  cost_high, cost_low = add(held_cost_high, held_cost_low, cost_high, cost_low)
  return pack('<dddddddc0', held + requests, in_high, in_low, out_high, out_low, cost_high, cost_low,
    sub(value, calendar_half_bytes + 1))
end

-- Metric codes: 1 requests, 2 tokens (input + output), 3 input, 4 output, 5 cost. Returns the limbs of the metric in the
-- half of a packed record that begins after \`offset\` bytes: 0 for what is reserved, 56 for what is settled.
local function calendar_part(value, metric, offset)
  if metric == 5 then
    return read('<dd', value, offset + 41)
  elseif metric == 2 then
    local in_high, in_low, out_high, out_low = read('<dddd', value, offset + 9)
    return add(in_high, in_low, out_high, out_low)
  elseif metric == 3 then
    return read('<dd', value, offset + 9)
  elseif metric == 4 then
    return read('<dd', value, offset + 25)
  end
  local requests = read('<d', value, offset + 1)
  local high = floor(requests / limb)
  return high, requests - high * limb
end

-- Settled + reserved.
local function calendar_taken(value, metric)
  if metric == 5 then
    -- The most frequent by far.
    local held_high, held_low = read('<dd', value, 41)
    local high, low = read('<dd', value, 97)
    return add(high, low, held_high, held_low)
  end
  local high, low = calendar_part(value, metric, 0)
  return add(high, low, calendar_part(value, metric, calendar_half_bytes))
end
-- end calendar
-- begin ring
-- A sliding window of \`n\` sub-buckets of \`width\` ms in one hash field. Little-endian doubles: total (the sum of all counts),
-- the count of the newest sub-bucket, its number, birth (the instant of the first admission); then the counts of the n
-- sub-buckets before it, newest first. What each call changes stands in front, so that the rest is copied as it is; it
-- moves when the next sub-bucket begins. Those counts have 4 bytes each (I4), or 8 (d) once one of them needs more: a
-- script pays for every byte of a string, and 2^32 tokens in one sub-bucket are rare.
--
-- Why it never admits more than the amount in any window of W = n * width ms:
--   At instant t the sub-bucket is i = floor(t / width). All of i - n .. i are counted, the oldest one whole. They cover
--   [(i - n) * width, t], and (i - n) * width <= t - n * width = t - W: everything admitted in (t - W, t] is counted.
--   A call is admitted only if that count plus its own reservation is within the amount. Take any window of length W and
--   the last admission t in it: all its admissions lie in (t - W, t], hence their sum is within the amount. QED.
--   The price is that a reservation counts for up to W + width instead of W: at most 1 / n of throughput.
--   A refund lowers only the sub-bucket that was charged, or an older one after a clock step, which leaves sooner: the
--   count stays at or above the truth. An extra charge goes to the current sub-bucket, like an admission.
--   When the clock steps back, time stands still (at most one window): nothing expires early. A larger step back moves
--   the whole count into the present sub-bucket, where it stays a full window more: again never less than the truth.

local ring_count_formats = { [4] = '<I4', [8] = '<d' }

local function ring_count_bytes(value, n)
  return (#value - 32) / n
end

-- The same ring with 8 bytes per count.
local function ring_widen(value, n)
  local counts = { read('<' .. string.rep('I4', n), value, 33) }
  return sub(value, 1, 32) .. pack('<' .. string.rep('d', n), unpack(counts, 1, n))
end

-- Charges the current sub-bucket. Returns the ring to store (with an amount of 0 as it stands at \`now\`), its total and
-- its birth.
local function ring_add(value, width, n, now, amount)
  local index = floor(now / width)
  local total, count, last, birth = 0, 0, index, now
  if value then
    total, count, last, birth = read('<dddd', value)
    local steps = index - last
    if steps <= 0 and steps >= -n then
      -- The newest sub-bucket is the present one, as for most calls (or time stands still): two numbers change.
      total = total + amount
      return pack('<ddc0', total, count + amount, sub(value, 17)), total, birth
    elseif steps > 0 and steps <= n then
      if count >= 4294967296 and ring_count_bytes(value, n) == 4 then
        value = ring_widen(value, n)
      end
      local bytes = ring_count_bytes(value, n)
      local format = ring_count_formats[bytes]
      for place = n - steps + 1, n do
        total = total - read(format, value, 33 + (place - 1) * bytes)
      end
      total = total + amount
      return pack('<ddddc0', total, amount, index, birth, string.rep('\\0', (steps - 1) * bytes))
        .. pack(format, count) .. sub(value, 33, 32 + (n - steps) * bytes), total, birth
    elseif steps > 0 then
      total = 0
    end
    count = total
  end
  total = total + amount
  return pack('<ddddc0', total, count + amount, index, birth, string.rep('\\0', n * 4)), total, birth
end

-- Gives back to the sub-bucket of the instant \`at\`; nothing to do once that has left the window. Returns the ring to store.
local function ring_refund(value, width, n, now, at, amount)
  value = ring_add(value, width, n, now, 0)
  local total, count, last = read('<ddd', value)
  local place = last - floor(at / width)
  if place == 0 then
    local back = math.min(count, amount)
    return pack('<ddc0', total - back, count - back, sub(value, 17))
  elseif place < 0 or place > n then
    return value
  end
  local bytes = ring_count_bytes(value, n)
  local format = ring_count_formats[bytes]
  local offset = 32 + (place - 1) * bytes
  count = read(format, value, offset + 1)
  local back = math.min(count, amount)
  return pack('<dc0', total - back, sub(value, 9, offset)) .. pack(format, count - back) .. sub(value, offset + bytes + 1)
end

-- Milliseconds until at least \`excess\` has left the ring, which stands at \`now\`.
local function ring_wait(value, width, n, now, excess)
  local bytes = ring_count_bytes(value, n)
  local format = ring_count_formats[bytes]
  local _, newest, last = read('<ddd', value)
  local freed = 0
  for place = n, 0, -1 do
    freed = freed + (place == 0 and newest or read(format, value, 33 + (place - 1) * bytes))
    if freed >= excess then
      return (last - place + n + 1) * width - now
    end
  end
  return -1
end

-- Cold start: a new window opens with a third of the amount and grows to all of it over its first length, as a token
-- bucket would that starts at a third. (Once warm, a bucket of capacity N refilled N per window refuses nothing that the
-- sliding window admits, so no level needs to be stored: see docs/adr/0010.) Returns how much may be counted by \`now\`.
local function warm_amount(amount, birth, window_ms, now)
  local age = now - birth
  if age >= window_ms or amount >= 9007199254740992 then
    return amount
  end
  return math.min(amount, math.ceil(amount / 3) + floor(amount * math.max(0, age) / window_ms))
end

-- Milliseconds until a cold window has warmed to \`wanted\`.
local function warm_wait(amount, birth, window_ms, now, wanted)
  return math.max(0, birth + math.ceil((wanted - math.ceil(amount / 3)) * window_ms / amount) - now)
end
-- end ring
-- begin slot
-- Calls in flight of a scope: a little-endian double, like all counters (a number in decimal is the dearest thing that a
-- script can hand to Redis).
local function slot_add(value, by)
  local count = by
  if value then
    count = read('<d', value) + by
    if count < 0 then
      count = 0
    end
  end
  return pack('<d', count), count
end
-- end slot
-- begin lease
-- The lease record: one string. Byte 1 is the state: R reserved, S settled, V voided, X expired (charged by the reaper).
-- R and X go on with little-endian doubles, then the length of the descriptor, the descriptor and the event draft:
--   1 reserved at  2 expires at
--   3 observed? (0/1)   4 observed input   5 observed output   6, 7 observed cost (limbs)
--   8 lease ms
--   9 window input 10 window output 11 window output of extensions 12 instant and 13 amount of the last extension
--  14,15 budget input  16,17 budget output  18,19 budget cost (limbs)
-- Instants in ms. The caller of an admission sends the record ready made but for the two instants, so that descriptor and
-- draft go through no script: every string that a script makes is hashed byte by byte, and these are the longest. For the
-- same reason the others read the header alone, then the descriptor. A heartbeat rewrites numbers 2 to 7.
local lease_format = '<dddddddddddddddddddI4'
local lease_observed_format = '<dddddd'
local lease_observed_at = '9'
local lease_header_bytes = 1 + 19 * 8 + 4

-- The state and what follows it up to the descriptor; the state alone of a lease that has ended; '' when there is none.
local function lease_read(key)
  return call('GETRANGE', key, '0', '156')
end

local function lease_open(record)
  return { read(lease_format, record, 2) }
end

local function lease_descriptor(key, header)
  return cmsgpack.unpack(call('GETRANGE', key, '157', lease_header_bytes + header[20] - 1))
end
-- end lease
-- begin release
-- Ends a reservation at every level: corrects all counters from what was reserved to what was used and frees the slot.
-- The descriptor in the lease record says which fields were charged: number of scopes, then per scope its id, the
-- numbers of concurrency, calendar and ring fields, the fields in that order, and per ring its metric, width and n.
-- Limits that came or went since the reservation change nothing here.
-- \`used\` has input and output tokens and cost as limbs and requests (1, or 0 for a void).
local function release(scope_prefix, descriptor, header, now, used)
  local held_in_high, held_in_low, held_out_high, held_out_low, held_cost_high, held_cost_low =
    unpack(header, 14, 19)
  local requests = used.requests
  local input = used.in_high * limb + used.in_low - header[9]
  local output = used.out_high * limb + used.out_low - header[10] - header[11]
  local window_change = { requests - 1, input + output, input, output }
  local at = 2
  for _ = 1, descriptor[1] do
    local key = scope_prefix .. descriptor[at]
    local slots, calendars, rings = descriptor[at + 1], descriptor[at + 2], descriptor[at + 3]
    at = at + 4
    local fields = slots + calendars + rings
    local values = call('HMGET', key, unpack(descriptor, at, at + fields - 1))
    local first = at - 1
    at = at + fields
    local set, length = {}, 0
    for slot = 1, slots do
      if values[slot] then
        set[length + 1], set[length + 2] = descriptor[first + slot], slot_add(values[slot], -1)
        length = length + 2
      end
    end
    for field = slots + 1, slots + calendars do
      -- A field that is gone belongs to a period that is over and booked.
      if values[field] then
        local c = calendar_open(values[field])
        c[1] = c[1] - 1
        c[2], c[3] = subtract(c[2], c[3], held_in_high, held_in_low)
        c[4], c[5] = subtract(c[4], c[5], held_out_high, held_out_low)
        c[6], c[7] = subtract(c[6], c[7], held_cost_high, held_cost_low)
        c[8] = c[8] + requests
        c[9], c[10] = add(c[9], c[10], used.in_high, used.in_low)
        c[11], c[12] = add(c[11], c[12], used.out_high, used.out_low)
        c[13], c[14] = add(c[13], c[14], used.cost_high, used.cost_low)
        set[length + 1], set[length + 2] = descriptor[first + field], calendar_pack(c)
        length = length + 2
      end
    end
    for ring = 1, rings do
      local metric, width, n = descriptor[at], descriptor[at + 1], descriptor[at + 2]
      at = at + 3
      local field = slots + calendars + ring
      local value = values[field]
      local change = window_change[metric]
      if value and change ~= 0 then
        if change > 0 then
          value = ring_add(value, width, n, now, change)
        else
          -- What the last extension took comes back first, to where it was charged; the rest to the reservation's.
          local from_extension = 0
          if metric == 2 or metric == 4 then
            from_extension = math.min(-change, header[13])
          end
          if from_extension > 0 then
            value = ring_refund(value, width, n, now, header[12], from_extension)
          end
          value = ring_refund(value, width, n, now, header[1], -change - from_extension)
        end
        set[length + 1], set[length + 2] = descriptor[first + field], value
        length = length + 2
      end
    end
    if length > 0 then
      call('HSET', key, unpack(set))
    end
  end
end
-- end release

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
`,
  wipe: `#!lua
-- Removes keys of a shard that is being rebuilt; only while the rebuild is still the caller's, so that one who was
-- paused too long cannot wipe what another has declared since.
--
-- KEYS[1]    lock of who rebuilds the shard
-- KEYS[2..]  scope hashes, lease records, leases
-- ARGV[1]    token in the lock
--
-- Returns    1, or 0 when the lock is not the caller's
-- Effects    the keys are gone.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
for i = 2, #KEYS do
  redis.call('UNLINK', KEYS[i])
end
return 1
`,
};
