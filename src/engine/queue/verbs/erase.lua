-- Marks a tenant's jobs as erased: pull.lua hands them out as suppressed. Jobs that wait for a retry become due.
-- Records when a recipient was erased, for messages to others that are copied to them.
--
-- KEYS[1]   the shard's prefix
--
-- ARGV[1]   the tenant
-- ARGV[2]   copies | mark | forget
-- ARGV[3..] copies: SHA-256 of the recipient, when they were erased (unix ms), and for how long (ms) that is kept.
--           mark: job ids. forget: where to continue ("0" at first), and about how many marks to check
--
-- copies returns 1. mark returns how many of the jobs have not ended. forget drops the marks of jobs that have ended, and
-- returns where to continue ("0" at the end). Safe to repeat.

local prefix, tenant, call = KEYS[1], ARGV[1], ARGV[2]
local key = prefix .. ':suppressed:' .. tenant

-- A job without a record has ended long ago, unless its entry is still there.
local function is_over(job, has_entry)
  local record = redis.call('HGET', bucket_key(prefix, job), bucket_field(job))
  if not record then return not has_entry end
  local owner, _, status = record_state(record)
  return owner ~= tenant or not is_unfinished(status)
end

if call == 'copies' then
  redis.call('SET', prefix .. ':erased-copy:' .. tenant .. ':' .. ARGV[3], ARGV[4], 'PX', ARGV[5])
  return 1
end

if call == 'forget' then
  local page = redis.call('HSCAN', key, ARGV[3], 'MATCH', ERASED_JOB .. '?*', 'COUNT', ARGV[4])
  for at = 1, #page[2], 2 do
    local field = page[2][at]
    if is_over(field:sub(#ERASED_JOB + 1), false) and redis.call('HDEL', key, field) == 1 then
      if redis.call('HINCRBY', key, ERASED_JOB, -1) <= 0 then redis.call('HDEL', key, ERASED_JOB) end
    end
  end
  return page[1]
end

local unfinished, later, time = 0, prefix .. ':later', agreed_ms(prefix)
for at = 3, #ARGV do
  local job = ARGV[at]
  if not is_over(job, true) then
    unfinished = unfinished + 1
    if redis.call('HSETNX', key, ERASED_JOB .. job, ERASED) == 1 then redis.call('HINCRBY', key, ERASED_JOB, 1) end
    -- A lent job is in flight.
    local due = redis.call('ZSCORE', later, job)
    if due and tonumber(due) > time and redis.call('HEXISTS', prefix .. ':loans', job) == 0 then make_due(prefix, job, time) end
  end
end
return unfinished
