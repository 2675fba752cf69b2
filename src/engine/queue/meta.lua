-- The queue's identity and mark, for the stores beside it. Also runs while Redis is full: a process that could not
-- start could not drain it.
--
-- KEYS[1]   wb:{meta}
--
-- ARGV[1]   name | mark
-- ARGV[2]   the id that the queue gets if it has none (name), the one that it must have (mark)
-- ARGV[3]   by how much its mark grows (mark)
-- ARGV[4..] marks that other stores have: field, mark, ... (mark)
--
-- Returns the queue's id (name), or its new mark; false: it is another queue.

local meta, call, id = KEYS[1], ARGV[1], ARGV[2]
if call == 'name' then
  redis.call('HSETNX', meta, 'queue', id)
  return redis.call('HGET', meta, 'queue')
end
if redis.call('HGET', meta, 'queue') ~= id then return false end
for at = 4, #ARGV, 2 do
  local known = tonumber(redis.call('HGET', meta, ARGV[at]) or '0')
  if tonumber(ARGV[at + 1]) > known then redis.call('HSET', meta, ARGV[at], ARGV[at + 1]) end
end
return redis.call('HINCRBY', meta, 'mark', ARGV[3])
