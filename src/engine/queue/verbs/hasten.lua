-- Makes parked jobs of some tenant queues due, a piece of the shard's parked jobs at a time: at once, or those that are
-- scheduled after a short delay.
--
-- KEYS[1]   the shard's prefix
--
-- ARGV[1]   where to continue in P:later ("0" at first)
-- ARGV[2]   about how many parked jobs to check
-- ARGV[3]   ms until scheduled ones are due: their owner must have learned by then that they are not to be sent
-- ARGV[4..] the tenant queues
--
-- Returns where to continue ("0" at the end), and how many jobs of the tenant queues were found. A lent job is counted
-- and left alone: it is in flight. A job that is parked, or returns, meanwhile may be missed, or counted twice.

local prefix, wanted = KEYS[1], {}
for at = 4, #ARGV do wanted[ARGV[at]] = true end

local later = prefix .. ':later'
local page = redis.call('ZSCAN', later, ARGV[1], 'COUNT', ARGV[2])
local time, moment, seen = agreed_ms(prefix), tonumber(ARGV[3]), 0
for at = 1, #page[2], 2 do
  local job, due = page[2][at], tonumber(page[2][at + 1])
  -- The record names the tenant queue and is short, whereas the parked entry includes the payload.
  local record = redis.call('HGET', bucket_key(prefix, job), bucket_field(job))
  local tenant, channel = record_state(record or '')
  if tenant and wanted[tenant .. '/' .. channel] then
    seen = seen + 1
    local is_lent = redis.call('HEXISTS', prefix .. ':loans', job) == 1
    local from = record_due(record) and time + moment or time
    if due > from and not is_lent then make_due(prefix, job, from) end
  end
end
return { page[1], seen }
