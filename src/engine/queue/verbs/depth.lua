-- Measures tenant queues. Read-only.
--
-- KEYS[1]   the shard's prefix
--
-- ARGV      tenant queues
--
-- Returns for each its length, the job id of its first entry ("" none), and when that was to be sent (Unix time in ms, ""
-- as soon as it was accepted).

local prefix = KEYS[1]
local answer = {}
for _, tenant_queue in ipairs(ARGV) do
  local key = queue_key(prefix, tenant_queue)
  local first = redis.call('XRANGE', key, '-', '+', 'COUNT', 1)[1]
  answer[#answer + 1] = redis.call('XLEN', key)
  answer[#answer + 1] = first and entry_job(get_text(first)) or ''
  answer[#answer + 1] = first and entry_due(get_text(first)) or ''
end
return answer
