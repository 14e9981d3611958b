-- A sliding window of `n` sub-buckets of `width` ms in one hash field. Little-endian doubles: total (the sum of all counts),
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

-- Charges the current sub-bucket. Returns the ring to store (with an amount of 0 as it stands at `now`), its total and
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
      return pack('<ddddc0', total, amount, index, birth, string.rep('\0', (steps - 1) * bytes))
        .. pack(format, count) .. sub(value, 33, 32 + (n - steps) * bytes), total, birth
    elseif steps > 0 then
      total = 0
    end
    count = total
  end
  total = total + amount
  return pack('<ddddc0', total, count + amount, index, birth, string.rep('\0', n * 4)), total, birth
end

-- Gives back to the sub-bucket of the instant `at`; nothing to do once that has left the window. Returns the ring to store.
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

-- Milliseconds until at least `excess` has left the ring, which stands at `now`.
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
-- sliding window admits, so no level needs to be stored: see docs/adr/0010.) Returns how much may be counted by `now`.
local function warm_amount(amount, birth, window_ms, now)
  local age = now - birth
  if age >= window_ms or amount >= 9007199254740992 then
    return amount
  end
  return math.min(amount, math.ceil(amount / 3) + floor(amount * math.max(0, age) / window_ms))
end

-- Milliseconds until a cold window has warmed to `wanted`.
local function warm_wait(amount, birth, window_ms, now, wanted)
  return math.max(0, birth + math.ceil((wanted - math.ceil(amount / 3)) * window_ms / amount) - now)
end
