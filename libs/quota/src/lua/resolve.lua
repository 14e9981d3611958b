#!lua flags=no-writes
-- The documents on a user's path, all of one version.
--
-- KEYS[1]    scope hash of the enterprise
-- KEYS[2]    documents of the enterprise
-- ARGV[1]    user id
-- ARGV[2]    version of the enterprise document that the caller has
-- ARGV[3]    how many nodes a path can have
--
-- Returns    array: version or '', version of the enterprise document or '', that document ('' when the caller has it),
--            then the node documents, user first; fewer than the path has when one is missing
-- Effects    none.

local version = redis.call('HGET', KEYS[1], 'v') or ''
local enterprise = redis.call('HMGET', KEYS[2], 'enterprise_version', 'enterprise')
local result = { version, enterprise[1] or '', '' }
if enterprise[1] and enterprise[1] ~= ARGV[2] then
  result[3] = enterprise[2]
end
local id = ARGV[1]
for _ = 1, tonumber(ARGV[3]) do
  local document = redis.call('HGET', KEYS[2], 'node:' .. id)
  if not document then
    break
  end
  result[#result + 1] = document
  id = cjson.decode(document).parentId
  if id == cjson.null then
    break
  end
end
return result
