-- The processes in a role.
--
-- KEYS[1]   the role's heartbeats (hash, process -> count)
--
-- ARGV[1]   beat | leave
-- ARGV[2]   process
-- ARGV[3]   the count that it must still have, "" any (leave)
--
-- Returns all processes and their counts alternately (beat), or 1.

local beats, call, process, expected = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
if call == 'beat' then
  redis.call('HINCRBY', beats, process, 1)
  return redis.call('HGETALL', beats)
end
if expected == '' or redis.call('HGET', beats, process) == expected then redis.call('HDEL', beats, process) end
return 1
