-- Returns the current data of jobs that their owners have had for a while.
--
-- KEYS[n]   prefix of the nth job's shard
--
-- ARGV      for each job:
--   1       lease token
--   2       tenant
--   3       job id
--   4       recipient
--   5       topic ("" none)
--
-- Returns for each job false when the lease is not held, otherwise what a pull would return for it: the reason for
-- which its recipient is suppressed ("" none), or REPORTED if its provider has it according to a report. Read-only.

local JOB_ARGS = 5

-- Two shards never have the same tenant.
local known = {}
local function read_news(prefix, token, tenant, job, recipient, topic)
  if not holds_lease(prefix, 'dispatcher', token) then return false end
  local record = redis.call('HGET', bucket_key(prefix, job), bucket_field(job))
  if record and is_with_provider(record) then return REPORTED end
  if known[tenant] == nil then known[tenant] = read_suppressions(prefix, tenant) end
  return known[tenant] and suppressed_for(known[tenant], job, recipient, topic) or ''
end

local answers = {}
for n = 1, #KEYS do
  local at = JOB_ARGS * (n - 1) + 1
  answers[n] = read_news(KEYS[n], unpack(ARGV, at, at + JOB_ARGS - 1))
end
return answers
