-- The processes that play a role.
-- KEYS: the role's heartbeats (hash, process -> count).
-- ARGV: beat, process | leave, process, the count that it must still have ("" any).
-- Returns all processes and their counts alternately (beat), or 1.

if ARGV[1] == 'beat' then
  redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
  return redis.call('HGETALL', KEYS[1])
end
if ARGV[3] == '' or redis.call('HGET', KEYS[1], ARGV[2]) == ARGV[3] then redis.call('HDEL', KEYS[1], ARGV[2]) end
return 1
