-- Records incoming messages, each once, and keeps the newest ones.
--
-- KEYS[1]   the stream of messages
-- KEYS[2]   the hash of their ids
--
-- ARGV[1]   how many are kept
-- then for each message:
--   1       its id
--   2       its text
--
-- Returns how many were new.
-- Refused before its first line when Redis is out of memory: the provider sends the messages again.

local stream, ids, kept_max = KEYS[1], KEYS[2], tonumber(ARGV[1])
local new = 0
for at = 2, #ARGV, 2 do
  local id, text = ARGV[at], ARGV[at + 1]
  if redis.call('HSETNX', ids, id, '') == 1 then
    redis.call('XADD', stream, '*', ID_FIELD, id, MESSAGE_FIELD, text)
    new = new + 1
  end
end
local beyond = redis.call('XLEN', stream) - kept_max
if beyond > 0 then
  for _, entry in ipairs(redis.call('XRANGE', stream, '-', '+', 'COUNT', beyond)) do
    local entry_id, fields = entry[1], entry[2]
    redis.call('HDEL', ids, fields[2])
    redis.call('XDEL', stream, entry_id)
  end
end
return new
