-- Reserves part of a tenant queue's daily allowance.
--
-- KEYS[1]   the shard's prefix
--
-- ARGV[1]   lease token
-- ARGV[2]   tenant queue
-- ARGV[3]   day
-- ARGV[4]   the day's allowance
-- ARGV[5]   units that the caller knows to be taken
-- ARGV[6]   units that it wants
-- ARGV[7]   ms that the count is kept
--
-- Returns false when the lease is not held, otherwise how many units are taken now. Takes no units if more are
--       taken than the caller knows: they may be its own, and it must learn of them first. A repeat therefore takes
--       no unit twice, and a late call takes no unit of another caller. If Redis lost its last writes, the caller's
--       knowledge repairs the count.

local prefix, token, tenant_queue, day = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local allowance, known, wanted, kept_ms = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
if not holds_lease(prefix, 'dispatcher', token) then return false end

local key = prefix .. ':allowance:' .. tenant_queue .. ':' .. day
local stored = tonumber(redis.call('GET', key) or '0')
if stored > known then return stored end

local taken = math.max(known, math.min(known + wanted, allowance))
if taken > stored then redis.call('SET', key, taken, 'PX', kept_ms) end
return taken
