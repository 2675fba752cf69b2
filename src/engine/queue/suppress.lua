-- The index of the registry's suppressions.
-- KEYS: the shard's prefix.
-- ARGV: put, tenant, recipient, reason
--     | remove, tenant, recipient
--     | load, lease token, whether these are the last (1), then three values per entry: tenant, recipient, reason.
-- load returns false when the lease is not held, otherwise whether the index is complete (1). It adds nothing to a
-- complete index: a call that arrives late must not bring anything back.

local prefix, call = KEYS[1], ARGV[1]
local loaded = prefix .. ':suppressions-loaded'

if call == 'put' then
  redis.call('HSET', prefix .. ':suppressed:' .. ARGV[2], ARGV[3], ARGV[4])
  return 1
end

if call == 'remove' then
  local key = prefix .. ':suppressed:' .. ARGV[2]
  -- A page that was read before the removal must not bring the recipient back.
  if redis.call('EXISTS', loaded) == 1 then redis.call('HDEL', key, ARGV[3]) else redis.call('HSET', key, ARGV[3], '') end
  return 1
end

if not holds_lease(prefix, 'dispatcher', ARGV[2]) then return false end
if redis.call('EXISTS', loaded) == 1 then return 1 end
for at = 4, #ARGV, 3 do
  redis.call('HSETNX', prefix .. ':suppressed:' .. ARGV[at], ARGV[at + 1], ARGV[at + 2])
end
if ARGV[3] ~= '1' then return 0 end
redis.call('SET', loaded, '1')
return 1
