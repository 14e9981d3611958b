-- One calendar record per scope, period and model: little-endian doubles in one hash field.
--    1 requests   2 requests of open leases
--    3, 4 input tokens    5, 6 output tokens    7, 8 cost (nano)         each settled + reserved, in limbs
--    9,10 input reserved 11,12 output reserved 13,14 cost reserved       in limbs
-- "Settled + reserved" is what a limit compares; "used" is that minus the reserved part.
local calendar_format = '<dddddddddddddd'

local function calendar_open(value)
  if not value then
    return { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
  end
  return { struct.unpack(calendar_format, value) }
end

local function calendar_pack(record)
  return struct.pack(calendar_format, unpack(record, 1, 14))
end

-- Metric codes: 1 requests, 2 tokens (input + output), 3 input, 4 output, 5 cost. Returns the limbs of the metric in a
-- record; offset 0 for settled + reserved, 6 for the reserved part.
local function calendar_metric(record, metric, offset)
  if metric == 5 then
    return record[7 + offset], record[8 + offset]
  elseif metric == 2 then
    return add(record[3 + offset], record[4 + offset], record[5 + offset], record[6 + offset])
  elseif metric == 3 then
    return record[3 + offset], record[4 + offset]
  elseif metric == 4 then
    return record[5 + offset], record[6 + offset]
  end
  local requests = offset == 0 and record[1] or record[2]
  local high = math.floor(requests / limb)
  return high, requests - high * limb
end
