-- Reserves part of a tenant queue's daily allowance.
-- KEYS: the shard's prefix.
-- ARGV: lease token, tenant queue, day, the day's allowance, how many units the caller knows to be taken, how many it
--       wants, ms that the count is kept.
-- Returns false when the lease is not held, otherwise how many units are taken now. Takes nothing if more units are
--       taken than the caller knows: they may be its own, and it must learn of them first. A repeat therefore takes
--       nothing twice, and a late call takes no unit of another caller. If Redis forgot its last writes, the caller's
--       knowledge repairs the count.

local prefix, token = KEYS[1], ARGV[1]
if not holds_lease(prefix, 'dispatcher', token) then return false end

local key = prefix .. ':allowance:' .. ARGV[2] .. ':' .. ARGV[3]
local allowance, known, wanted = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local stored = tonumber(redis.call('GET', key) or '0')
if stored > known then return stored end

local taken = math.max(known, math.min(known + wanted, allowance))
if taken > stored then redis.call('SET', key, taken, 'PX', ARGV[7]) end
return taken
