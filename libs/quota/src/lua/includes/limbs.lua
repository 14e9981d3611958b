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
