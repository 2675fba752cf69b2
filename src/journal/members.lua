-- Which processes play a role. KEYS: the role's members (zset, process -> until unix ms).
-- ARGV: join | leave, process, ttl ms. Returns how many live.

local now = now_ms()
if ARGV[1] == 'join' then
  redis.call('ZADD', KEYS[1], now + tonumber(ARGV[3]), ARGV[2])
else
  redis.call('ZREM', KEYS[1], ARGV[2])
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
return redis.call('ZCARD', KEYS[1])
