-- Ends a reservation at every level: corrects all counters from what was reserved to what was used and frees the slot.
-- The descriptor in the lease record says which fields were charged: number of scopes, then per scope its id, the
-- numbers of concurrency, calendar and ring fields, the fields in that order, and per ring its metric, width and n.
-- Limits that came or went since the reservation change nothing here.
-- `used` has input and output tokens and cost as limbs and requests (1, or 0 for a void).
local function release(scope_prefix, record, header, now, used)
  local descriptor = lease_descriptor(record, header)
  local in_high, in_low = subtract(used.in_high, used.in_low, header[14], header[15])
  local out_high, out_low = subtract(used.out_high, used.out_low, header[16], header[17])
  local cost_high, cost_low = subtract(used.cost_high, used.cost_low, header[18], header[19])
  local input = used.in_high * limb + used.in_low - header[9]
  local output = used.out_high * limb + used.out_low - header[10] - header[11]
  local window_change = { used.requests - 1, input + output, input, output }
  local at = 2
  for _ = 1, descriptor[1] do
    local key = scope_prefix .. descriptor[at]
    local slots, calendars, rings = descriptor[at + 1], descriptor[at + 2], descriptor[at + 3]
    at = at + 4
    local fields = slots + calendars + rings
    local values = redis.call('HMGET', key, unpack(descriptor, at, at + fields - 1))
    local first = at - 1
    at = at + fields
    local set, length = {}, 0
    for slot = 1, slots do
      if values[slot] then
        set[length + 1], set[length + 2] = descriptor[first + slot], math.max(0, values[slot] - 1)
        length = length + 2
      end
    end
    for field = slots + 1, slots + calendars do
      -- A field that is gone belongs to a period that is over and booked.
      if values[field] then
        local c = calendar_open(values[field])
        c[1] = c[1] + used.requests - 1
        c[2] = c[2] - 1
        c[3], c[4] = add(c[3], c[4], in_high, in_low)
        c[5], c[6] = add(c[5], c[6], out_high, out_low)
        c[7], c[8] = add(c[7], c[8], cost_high, cost_low)
        c[9], c[10] = subtract(c[9], c[10], header[14], header[15])
        c[11], c[12] = subtract(c[11], c[12], header[16], header[17])
        c[13], c[14] = subtract(c[13], c[14], header[18], header[19])
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
          value = ring_refund(value, width, n, now, header[7], -change - from_extension)
        end
        set[length + 1], set[length + 2] = descriptor[first + field], value
        length = length + 2
      end
    end
    if length > 0 then
      redis.call('HSET', key, unpack(set))
    end
  end
end
