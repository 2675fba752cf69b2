-- The index of the registry's suppressions.
--
-- KEYS[1]   the shard's prefix
--
-- ARGV[1]   put | remove
-- ARGV[2]   tenant
-- ARGV[3]   recipient
-- ARGV[4]   reason (put)
-- or:
-- ARGV[1]   load
-- ARGV[2]   lease token
-- ARGV[3]   1 if these are the last
-- then for each suppression:
--   1       tenant
--   2       recipient
--   3       reason
--
-- put and remove return 1. load returns false when the lease is not held, otherwise whether the index is complete (1). It leaves a
-- complete index unchanged: a late call must not restore removed suppressions.

local prefix, call = KEYS[1], ARGV[1]
local loaded = prefix .. ':suppressions-loaded'

local function suppressed_key(tenant) return prefix .. ':suppressed:' .. tenant end

if call == 'put' then
  local tenant, recipient, reason = ARGV[2], ARGV[3], ARGV[4]
  redis.call('HSET', suppressed_key(tenant), recipient, reason)
  return 1
end

if call == 'remove' then
  local key, recipient = suppressed_key(ARGV[2]), ARGV[3]
  -- A page that was read before the removal must not restore the recipient.
  if redis.call('EXISTS', loaded) == 1 then redis.call('HDEL', key, recipient) else redis.call('HSET', key, recipient, '') end
  return 1
end

local token, is_last = ARGV[2], ARGV[3] == '1'
if not holds_lease(prefix, 'dispatcher', token) then return false end
if redis.call('EXISTS', loaded) == 1 then return 1 end
for at = 4, #ARGV, 3 do
  local tenant, recipient, reason = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  redis.call('HSETNX', suppressed_key(tenant), recipient, reason)
end
if not is_last then return 0 end
redis.call('SET', loaded, '1')
return 1
