-- Migrates a shard's data from an older format to this one.
--
-- KEYS[1]   the shard's prefix
-- KEYS[2]   a bucket of job records of the first format, or none for the parts that concern the whole shard
--
-- ARGV[1]   the format
-- ARGV[2]   how many jobs are listed together
--
-- Returns 1. Safe to repeat.

local prefix, bucket, format, together = KEYS[1], KEYS[2], tonumber(ARGV[1]), tonumber(ARGV[2])

-- Rate windows and loads used to have a hash each.
local function merge_tenants()
  local rates, loads, key = prefix .. ':rate', prefix .. ':load', prefix .. ':tenants'
  local windows = redis.call('HGETALL', rates)
  for i = 1, #windows, 2 do
    local load = redis.call('HGET', loads, windows[i]) or '0 0'
    redis.call('HSET', key, windows[i], load .. ' ' .. windows[i + 1])
  end
  local all = redis.call('HGETALL', loads)
  for i = 1, #all, 2 do
    local text = all[i] == '' and all[i + 1] or all[i + 1] .. ' 0 0 0 0'
    redis.call('HSETNX', key, all[i], text)
  end
  redis.call('DEL', rates, loads)
end

if not bucket then
  merge_tenants()
  if format > 1 then return 1 end
  -- Events that have left the outbox are in the event store.
  local oldest = redis.call('XRANGE', prefix .. ':outbox', '-', '+', 'COUNT', 1)[1]
  local rows = oldest and select(2, parse_rows(oldest)) or ''
  local first = rows:match('^%["[^"]*","[^"]*","%a",(%d+)')
  local last = first and tonumber(first) - 1 or tonumber(redis.call('GET', prefix .. ':clock') or '0')
  redis.call('SET', prefix .. ':recorded', string.format('%.0f', last))
  redis.call('DEL', prefix .. ':closing', prefix .. ':lease:dispatcher', prefix .. ':lease:recorder')
  return 1
end

-- Buckets had a count, and expired; now each finished job is removed by the list.
local FORMER_COUNT = 'r'
redis.call('HDEL', bucket, FORMER_COUNT)
redis.call('PERSIST', bucket)
local name, ended = bucket:match(':jobs:(%x+)$'), {}
for _, field in ipairs(redis.call('HKEYS', bucket)) do
  local _, _, status = record_state(redis.call('HGET', bucket, field))
  if status and not is_unfinished(status) then
    ended[#ended + 1] = name:sub(1, DASH_AT - 1) .. '-' .. name:sub(DASH_AT) .. field
  end
end
for i = 1, #ended, together do
  local jobs = table.concat(ended, ' ', i, math.min(i + together - 1, #ended))
  redis.call('RPUSH', prefix .. ':leaving', string.format('%.0f', agreed_ms(prefix)) .. ' ' .. jobs)
end
return 1
