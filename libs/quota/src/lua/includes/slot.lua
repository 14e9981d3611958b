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
