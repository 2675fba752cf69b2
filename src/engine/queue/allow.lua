-- Takes of what a box may send on a day.
-- KEYS: the shard's prefix.
-- ARGV: lease token, box, day, how many may be sent on it, how many the caller knows to be taken, how many it wants, ms
--       that the count is kept.
-- Returns false when the lease is not held, otherwise how many are taken now. Takes nothing where more are taken than the
-- caller knows: it has to hear of those first, they may be its own. So a repeat takes nothing twice, and a call that comes
-- late nothing that anybody else has. Where Redis forgot its last writes, the caller's knowledge mends the count.

local prefix, token = KEYS[1], ARGV[1]
if not holds_lease(prefix, 'dispatcher', token) then return false end

local key = prefix .. ':allowance:' .. ARGV[2] .. ':' .. ARGV[3]
local allowance, known, wanted = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local stored = tonumber(redis.call('GET', key) or '0')
if stored > known then return stored end

local taken = math.max(known, math.min(known + wanted, allowance))
if taken > stored then redis.call('SET', key, taken, 'PX', ARGV[7]) end
return taken
