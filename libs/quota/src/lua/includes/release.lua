-- Ends a reservation at every level: corrects all counters from what was reserved to what was used and frees the slot.
-- The descriptor in the lease record says which fields were charged: number of scopes, then per scope its id, the
-- numbers of concurrency, calendar and ring fields, the fields in that order, and per ring its metric, width and n.
-- Limits that came or went since the reservation change nothing here.
-- `used` has input and output tokens and cost as limbs and requests (1, or 0 for a void).
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
