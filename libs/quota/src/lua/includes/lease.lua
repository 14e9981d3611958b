-- The lease record: one string. Byte 1 is the state: R reserved, S settled, V voided, X expired (charged by the reaper).
-- R and X go on with little-endian doubles, then the length of the descriptor, the descriptor and the event draft:
--   1 reserved at  2 expires at
--   3 observed? (0/1)   4 observed input   5 observed output   6, 7 observed cost (limbs)
--   8 lease ms
--   9 window input 10 window output 11 window output of extensions 12 instant and 13 amount of the last extension
--  14,15 budget input  16,17 budget output  18,19 budget cost (limbs)
-- Instants in ms. The caller of an admission sends the record ready made but for the two instants, so that descriptor and
-- draft go through no script: every string that a script makes is hashed byte by byte, and these are the longest. For the
-- same reason the others read the header alone, then the descriptor. A heartbeat rewrites numbers 2 to 7.
local lease_format = '<dddddddddddddddddddI4'
local lease_observed_format = '<dddddd'
local lease_observed_at = '9'
local lease_header_bytes = 1 + 19 * 8 + 4

-- The state and what follows it up to the descriptor; the state alone of a lease that has ended; '' when there is none.
local function lease_read(key)
  return call('GETRANGE', key, '0', '156')
end

local function lease_open(record)
  return { read(lease_format, record, 2) }
end

local function lease_descriptor(key, header)
  return cmsgpack.unpack(call('GETRANGE', key, '157', lease_header_bytes + header[20] - 1))
end
