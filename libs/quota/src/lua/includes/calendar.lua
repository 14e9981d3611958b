-- One calendar record per scope, period and model: little-endian doubles in one hash field, amounts in limbs.
--    1 requests    2, 3 input tokens    4, 5 output tokens    6, 7 cost (nano)    reserved by open leases
--    8 requests    9,10 input tokens   11,12 output tokens   13,14 cost           settled
-- A limit compares the sum of the two halves. They are kept apart because an admission changes the first alone.
local calendar_format = '<dddddddddddddd'
local calendar_half_bytes = 56

local empty

local function calendar_empty()
  empty = empty or string.rep('\0', 2 * calendar_half_bytes)
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
-- half of a packed record that begins after `offset` bytes: 0 for what is reserved, 56 for what is settled.
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
