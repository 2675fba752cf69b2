-- Leases of a shard. The token is a counter with random bits behind it, so that it cannot repeat even where the counter
-- was lost with Redis's last writes.
-- KEYS: the shard's prefix. ARGV: acquire | renew | release, role, token (acquire: random bits), ttl ms, owner.
-- Returns the token (acquire), 1 (renew, release), or false when somebody else holds the lease.

local key = KEYS[1] .. ':lease:' .. ARGV[2]
local call, token, ttl = ARGV[1], ARGV[3], ARGV[4]

if call == 'acquire' then
  if redis.call('EXISTS', key) == 1 then return false end
  token = redis.call('INCR', KEYS[1] .. ':epoch') .. '-' .. token
  redis.call('HSET', key, 'owner', ARGV[5], 'token', token)
  redis.call('PEXPIRE', key, ttl)
  return token
end
if redis.call('HGET', key, 'token') ~= token then return false end
if call == 'renew' then redis.call('PEXPIRE', key, ttl) else redis.call('DEL', key) end
return 1
