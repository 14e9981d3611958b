-- The lease record: one string. Byte 1 is the state: R reserved, S settled, V voided, X expired (charged by the reaper).
-- R and X go on with little-endian doubles, then the length of the descriptor, the descriptor and the event draft:
--   1 expires at   2 observed? (0/1)   3 observed input   4 observed output   5, 6 observed cost (limbs)
--   7 reserved at  8 lease ms
--   9 window input 10 window output 11 window output of extensions 12 instant and 13 amount of the last extension
--  14,15 budget input  16,17 budget output  18,19 budget cost (limbs)
-- Instants in ms. What changes while a call runs stands first, so that a heartbeat rewrites 48 bytes and no more.
local lease_format = '<dddddddddddddddddddI4'
local lease_observed_format = '<dddddd'
local lease_header_bytes = 1 + 19 * 8 + 4

local function lease_open(record)
  return { struct.unpack(lease_format, record, 2) }
end

local function lease_descriptor(record, header)
  return cmsgpack.unpack(string.sub(record, lease_header_bytes + 1, lease_header_bytes + header[20]))
end
