-- Statuses that processes publish for each other. Also runs while Redis is full: that is when operators need them.
--
-- KEYS[1]   the prefix of everything about processes
--
-- ARGV[1]   tell | withdraw | read
-- ARGV[2]   process (tell, withdraw)
-- ARGV[3]   its status (tell)
-- ARGV[4..] jobs that it accepted: minute (unix minutes), channel, jobs, ... (tell)
--
--   P:status:<process>    string  its status
--   P:statuses            zset    process -> when it published it (unix ms)
--   P:accepted:<hour>     hash    "<minute> <channel>" -> jobs accepted in that minute; hours since 1970
--   P:accepted-day:<day>  string  jobs accepted on that UTC day; days since 1970
--
-- Returns, for read, the statuses, the counts of this hour and the last as field and value alternately, and those of the day.

local prefix, call, process = KEYS[1], ARGV[1], ARGV[2]
local index = prefix .. ':statuses'
local now = now_ms()

if call == 'read' then
  local statuses = {}
  for _, name in ipairs(redis.call('ZREVRANGEBYSCORE', index, '+inf', now - STATUS_KEPT_MS, 'LIMIT', 0, STATUSES_MAX)) do
    local status = redis.call('GET', prefix .. ':status:' .. name)
    if status then statuses[#statuses + 1] = status end
  end
  local hour, counts = math.floor(now / 3600000), {}
  for at = hour - 1, hour do
    for _, text in ipairs(redis.call('HGETALL', prefix .. ':accepted:' .. at)) do counts[#counts + 1] = text end
  end
  local day = math.floor(now / 86400000)
  return { statuses, counts, redis.call('GET', prefix .. ':accepted-day:' .. day) or '0' }
end

redis.call('ZREMRANGEBYSCORE', index, '-inf', now - STATUS_KEPT_MS)
if call == 'withdraw' then
  redis.call('DEL', prefix .. ':status:' .. process)
  redis.call('ZREM', index, process)
  return 1
end

redis.call('SET', prefix .. ':status:' .. process, ARGV[3], 'PX', STATUS_KEPT_MS)
redis.call('ZADD', index, now, process)
for at = 4, #ARGV, 3 do
  local minute, jobs = tonumber(ARGV[at]), ARGV[at + 2]
  local counts = prefix .. ':accepted:' .. math.floor(minute / 60)
  redis.call('HINCRBY', counts, minute .. ' ' .. ARGV[at + 1], jobs)
  redis.call('PEXPIRE', counts, 3 * 3600000)
  local day = prefix .. ':accepted-day:' .. math.floor(minute / 1440)
  redis.call('INCRBY', day, jobs)
  redis.call('PEXPIRE', day, 2 * 86400000)
end
return 1
