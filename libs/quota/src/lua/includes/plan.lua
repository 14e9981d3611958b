-- A plan says what a call on one path, for one model, is counted in and checked against. It comes in two parts: the names
-- (msgpack, a flat list): per scope its concurrency, calendar and ring fields in that order, for the enterprise also the
-- policy version's; at the end the oldest day, week and month to keep. And the numbers, packed:
--   valid from, valid until, number of scopes; then per scope
--     numbers of concurrency, calendar and ring fields and of checks
--     per ring metric, width, n
--     per check kind (1 concurrency, 2 calendar, 3 ring), number of its field within the scope, metric, amount (limbs),
--     1 when hard, width and n of its ring
local plan_format = '<ddB'
local plan_scope_format = '<I2I2I2I2'
local plan_ring_format = '<BI4B'
local plan_check_format = '<BI2BddBI4B'
