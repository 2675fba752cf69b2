-- Brings what the first format wrote of a shard into the second.
-- KEYS: the shard's prefix, and a bucket of job records, or none: then what concerns the shard as a whole.
-- ARGV: jobs that are noted together.
-- Returns 1. Safe to repeat.

local prefix, bucket = KEYS[1], KEYS[2]

if not bucket then
  -- What is not in the outbox any more is in the event store.
  local oldest = redis.call('XRANGE', prefix .. ':outbox', '-', '+', 'COUNT', 1)[1]
  local first = oldest and (oldest[2][4] or ''):match('^%["[^"]*","[^"]*","%a",(%d+)')
  local last = first and tonumber(first) - 1 or tonumber(redis.call('GET', prefix .. ':clock') or '0')
  redis.call('SET', prefix .. ':recorded', string.format('%.0f', last))
  redis.call('DEL', prefix .. ':closing', prefix .. ':lease:dispatcher', prefix .. ':lease:recorder')
  return 1
end

-- Buckets had a count, and expired; now each finished job leaves by the list.
redis.call('HDEL', bucket, 'r')
redis.call('PERSIST', bucket)
local name, ended = bucket:match(':jobs:(%x+)$'), {}
for _, field in ipairs(redis.call('HKEYS', bucket)) do
  local status = (redis.call('HGET', bucket, field)):match('^%S+ %a(%a)')
  if status and not is_unfinished(status) then
    ended[#ended + 1] = name:sub(1, 8) .. '-' .. name:sub(9) .. field
  end
end
for i = 1, #ended, tonumber(ARGV[1]) do
  local jobs = table.concat(ended, ' ', i, math.min(i + ARGV[1] - 1, #ended))
  redis.call('RPUSH', prefix .. ':leaving', string.format('%.0f', shard_ms(prefix)) .. ' ' .. jobs)
end
return 1
