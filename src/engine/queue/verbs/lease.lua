-- Leases of a shard. The token is a counter followed by random bits, so that it cannot repeat even if the counter was
-- lost with Redis's last writes. No clock takes part: a lease belongs to its owner until it is released, or granted to
-- another process that has watched it long enough.
--
-- KEYS[1]   the shard's prefix
--
-- ARGV[1]   acquire
-- ARGV[2]   role
-- ARGV[3]   random bits
-- ARGV[4]   owner
-- ARGV[5]   token of the lease as the caller read it ("" no owner)
-- ARGV[6]   its renewals ("" no owner)
-- or:
-- ARGV[1]   renew | release
-- ARGV[2]   role
-- ARGV[3]   token
-- ARGV[4]   shard (release)
--
-- Returns the token (acquire), 1 (renew, release), or false when the lease has changed since the caller read it, or is
-- not the caller's.

local prefix, call, role = KEYS[1], ARGV[1], ARGV[2]
local key = prefix .. ':lease:' .. role
local held_token, held_renewals = unpack(redis.call('HMGET', key, 'token', 'renewals'))

if call == 'acquire' then
  local bits, owner, seen_token, seen_renewals = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
  if (held_token or '') ~= seen_token then return false end
  if (held_token and (held_renewals or '0') or '') ~= seen_renewals then return false end
  local token = redis.call('INCR', prefix .. ':epoch') .. '-' .. bits
  redis.call('HSET', key, 'owner', owner, 'token', token, 'renewals', 0)
  return token
end
if held_token ~= ARGV[3] then return false end
if call == 'renew' then
  redis.call('HINCRBY', key, 'renewals', 1)
else
  redis.call('DEL', key)
  redis.call('PUBLISH', RELEASED_CHANNEL, role .. ' ' .. ARGV[4])
end
return 1
