-- A sliding window of `n` sub-buckets of `width` ms in one hash field: doubles birth, last, total, then n + 1 counts as
-- a ring (sub-bucket k stands at k mod (n + 1)). `birth` is the instant of its first admission, `last` the newest
-- sub-bucket, `total` the sum of the counts.
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
local ring_formats = { [10] = '<dddddddddddddd', [12] = '<dddddddddddddddd' }

-- Opens the stored ring at `now` and drops what has left the window. Fields: 1 birth, 2 last, 3 total, then the counts.
local function ring_open(value, width, n, now)
  local index = math.floor(now / width)
  local slots = n + 1
  if not value then
    local fresh = { now, index, 0 }
    for slot = 4, slots + 3 do
      fresh[slot] = 0
    end
    return fresh
  end
  local ring = { struct.unpack(ring_formats[n], value) }
  local last = ring[2]
  if index > last then
    local steps = math.min(index - last, slots)
    local left = 0
    for step = 1, steps do
      local slot = 4 + (index - steps + step) % slots
      left = left + ring[slot]
      ring[slot] = 0
    end
    ring[2] = index
    ring[3] = ring[3] - left
  elseif last - index > n then
    for slot = 4, slots + 3 do
      ring[slot] = 0
    end
    ring[4 + index % slots] = ring[3]
    ring[2] = index
  end
  return ring
end

local function ring_pack(ring, n)
  return struct.pack(ring_formats[n], unpack(ring, 1, n + 4))
end

-- Most calls find the newest sub-bucket to be the present one: then two numbers change and nothing else is read.
local function ring_patch(value, index, n, total, count)
  local offset = 24 + index % (n + 1) * 8
  return string.sub(value, 1, 16)
    .. struct.pack('<d', total)
    .. string.sub(value, 25, offset)
    .. struct.pack('<d', count)
    .. string.sub(value, offset + 9)
end

-- Charges the current sub-bucket. Returns the ring to store, its total and its birth.
local function ring_add(value, width, n, now, amount)
  if value then
    local birth, last, total = struct.unpack('<ddd', value)
    local index = math.floor(now / width)
    if index <= last and last - index <= n then
      local count = struct.unpack('<d', value, 25 + last % (n + 1) * 8)
      return ring_patch(value, last, n, total + amount, count + amount), total + amount, birth
    end
  end
  local ring = ring_open(value, width, n, now)
  local slot = 4 + ring[2] % (n + 1)
  ring[slot] = ring[slot] + amount
  ring[3] = ring[3] + amount
  return ring_pack(ring, n), ring[3], ring[1]
end

-- Gives back to the sub-bucket of the instant `at`; nothing to do once that has left the window. Returns the ring to store.
local function ring_refund(value, width, n, now, at, amount)
  local index = math.floor(at / width)
  local present = math.floor(now / width)
  local _, last, total = struct.unpack('<ddd', value)
  if present <= last and last - present <= n then
    if index > last or last - index > n then
      return value
    end
    local count = struct.unpack('<d', value, 25 + index % (n + 1) * 8)
    local back = math.min(count, amount)
    return ring_patch(value, index, n, total - back, count - back)
  end
  local ring = ring_open(value, width, n, now)
  if index <= ring[2] and ring[2] - index <= n then
    local slot = 4 + index % (n + 1)
    local back = math.min(ring[slot], amount)
    ring[slot] = ring[slot] - back
    ring[3] = ring[3] - back
  end
  return ring_pack(ring, n)
end

-- Milliseconds until at least `excess` has left the window.
local function ring_wait(ring, width, n, now, excess)
  local freed = 0
  for index = ring[2] - n, ring[2] do
    freed = freed + ring[4 + index % (n + 1)]
    if freed >= excess then
      return (index + n + 1) * width - now
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
  return math.min(amount, math.ceil(amount / 3) + math.floor(amount * math.max(0, age) / window_ms))
end

-- Milliseconds until a cold window has warmed to `wanted`.
local function warm_wait(amount, birth, window_ms, now, wanted)
  return math.max(0, birth + math.ceil((wanted - math.ceil(amount / 3)) * window_ms / amount) - now)
end
