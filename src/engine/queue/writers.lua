-- Records when each person last wrote to each number.
--
-- KEYS[1]   prefix of the sorted sets of writers, one for each number: a writer's score is unix milliseconds
--
-- ARGV      for each message:
--   1       the number
--   2       its writer
--   3       when it was written, in unix milliseconds; "": now
--
-- Refused before its first line when Redis is out of memory: the provider sends the messages again.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local forgotten = now - WRITERS_KEPT_MS

for at = 1, #ARGV, 3 do
  local writers, writer = KEYS[1] .. ARGV[at], ARGV[at + 1]
  -- A message may come days after it was written.
  local written = math.min(tonumber(ARGV[at + 2]) or now, now)
  if written > forgotten then
    redis.call('ZADD', writers, 'GT', written, writer)
    redis.call('PEXPIRE', writers, WRITERS_KEPT_MS)
    -- At most one writer was added, so the set shrinks to its bound if each call may remove two, and no call removes
    -- many.
    local beyond = redis.call('ZCARD', writers) - WRITERS_MAX
    local oldest = redis.call('ZRANGE', writers, 0, 1, 'WITHSCORES')
    for i = 1, #oldest, 2 do
      if beyond > 0 or tonumber(oldest[i + 1]) <= forgotten then
        redis.call('ZREM', writers, oldest[i])
        beyond = beyond - 1
      end
    end
  end
end
return redis.status_reply('OK')
