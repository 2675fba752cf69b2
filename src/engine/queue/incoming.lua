-- Records incoming messages, each once, and keeps the newest ones.
-- KEYS: the stream of messages, the hash of their ids.
-- ARGV: how many are kept, then two values per message: its id and its text.
-- Returns how many were new.
-- Refused before its first line when Redis is out of memory: the provider sends the messages again.

local new = 0
for at = 2, #ARGV, 2 do
  if redis.call('HSETNX', KEYS[2], ARGV[at], '') == 1 then
    redis.call('XADD', KEYS[1], '*', 'i', ARGV[at], 'm', ARGV[at + 1])
    new = new + 1
  end
end
local beyond = redis.call('XLEN', KEYS[1]) - tonumber(ARGV[1])
if beyond > 0 then
  for _, entry in ipairs(redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', beyond)) do
    redis.call('HDEL', KEYS[2], entry[2][2])
    redis.call('XDEL', KEYS[1], entry[1])
  end
end
return new
