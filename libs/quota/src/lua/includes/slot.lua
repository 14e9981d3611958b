-- Calls in flight of a scope: a little-endian double, like all counters (a number in decimal is the dearest thing that a
-- script can hand to Redis).
local function slot_count(value)
  if not value then
    return 0
  end
  return (struct.unpack('<d', value))
end

local function slot_add(value, by)
  local count = math.max(0, slot_count(value) + by)
  return struct.pack('<d', count), count
end
