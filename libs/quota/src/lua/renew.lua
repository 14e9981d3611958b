#!lua
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
-- @include builtins
-- @include clock
-- @include lease

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
