-- Leases of a shard. The token is a counter followed by random bits, so that it cannot repeat even if the counter was
-- lost with Redis's last writes. No clock takes part: a lease belongs to its owner until it is released, or granted to
-- another process that has watched it long enough.
-- KEYS: the shard's prefix.
-- ARGV: acquire, role, random bits, owner, token and renewals of the lease as the caller saw it ("" both: nobody's)
--     | renew, role, token
--     | release, role, token, shard.
-- Returns the token (acquire), 1 (renew, release), or false when the lease has changed since the caller saw it, or is
--       not the caller's.

local call, key, token = ARGV[1], KEYS[1] .. ':lease:' .. ARGV[2], ARGV[3]
local held = redis.call('HMGET', key, 'token', 'renewals')

if call == 'acquire' then
  if (held[1] or '') ~= ARGV[5] or (held[1] and (held[2] or '0') or '') ~= ARGV[6] then return false end
  token = redis.call('INCR', KEYS[1] .. ':epoch') .. '-' .. token
  redis.call('HSET', key, 'owner', ARGV[4], 'token', token, 'renewals', 0)
  return token
end
if held[1] ~= token then return false end
if call == 'renew' then
  redis.call('HINCRBY', key, 'renewals', 1)
else
  redis.call('DEL', key)
  redis.call('PUBLISH', 'wb:released', ARGV[2] .. ' ' .. ARGV[4])
end
return 1
