-- Queues failed jobs of one tenant again, under their ids: accept for jobs that are known.
--
-- KEYS[1]   the shard's prefix
--
-- ARGV[1]   1 if an earlier try of this call may have landed
-- ARGV[2]   the shard's number
-- ARGV[3]   tenant
-- ARGV[4]   most unfinished jobs (-1: no bound)
-- ARGV[5]   most bytes of their payloads (-1: no bound)
-- ARGV[6]   when the operator retries them (unix ms)
-- then for each job:
--   1       its entry, without attempts
--   2       its record from the event store
--   3       the life that failed: the event id before which it began (0 the first)
--   4       how many settlements it is known to have had
--
-- Returns a word for each job: RETRIED, NOT_FAILED, UNKNOWN, or the exhausted part of the tenant's share: jobs | bytes
--
-- Refused before its first line when Redis is out of memory, as accept is. Safe to repeat, however late: a new life has
-- another beginning, so a failure is retried once. The number of its settlements goes on, so a late settlement of the
-- former life counts as settled.

local call = redis.call
local prefix, is_repeat, number, tenant = KEYS[1], ARGV[1] == '1', ARGV[2], ARGV[3]
local jobs_max, bytes_max, at_ms = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local FIRST_ITEM, ITEM_ARGS = 7, 4
local out, ready, clock = {}, {}, event_clock(prefix)
local texts = call('HMGET', prefix .. ':tenants', '', tenant)
local last_entry, retried = tonumber(texts[1] or '0'), 0
local jobs, bytes, first, total, slice, here = tenant_state(texts[2])

local function status_of_new(entry)
  return entry:byte(COUNT_AT + 1) == SCREENING:byte() and STATUS_HELD_PENDING or STATUS_PENDING
end

local function retry(entry, record, settled)
  local job, channel = entry_job(entry), entry_channel(entry)
  local attempts, waits, lines = record:match('^%S+ %a%a(%d+)%+?(%d*)[^\n]*(.*)$')
  settled = math.max(tonumber(settled), attempts + (tonumber(waits) or 0))
  local count = count_text(0, (math.floor(settled / SETTLEMENTS_PER_LIFE) + 1) * SETTLEMENTS_PER_LIFE)
  last_entry = next_entry(last_entry)
  local id, life = entry_id(last_entry), '@' .. clock.next() .. ':' .. at_ms
  local tenant_queue = tenant .. '/' .. channel
  local status = status_of_new(entry)
  add_entry(queue_key(prefix, tenant_queue), id, with_count(entry, count))
  local head = tenant .. ' ' .. channel .. status .. count .. end_of_head(id .. life, record_tries(record))
  -- The result belonged to the failure.
  call('HSET', bucket_key(prefix, job), bucket_field(job), head .. lines:gsub('\n' .. RESULT .. '[^\n]*', ''))
  jobs, bytes, retried = jobs + 1, bytes + payload_bytes(entry), retried + 1
  ready[tenant_queue] = true
end

for at = FIRST_ITEM, #ARGV, ITEM_ARGS do
  local entry, told, began, settled = unpack(ARGV, at, at + ITEM_ARGS - 1)
  local job = entry_job(entry)
  local record = call('HGET', bucket_key(prefix, job), bucket_field(job)) or told
  local owner, _, status = record_state(record)
  local answer = RETRIED
  if owner ~= tenant then
    answer = UNKNOWN
  elseif life_began(record_life(record)) ~= tonumber(began) then
    answer = is_repeat and RETRIED or NOT_FAILED
  elseif status ~= STATUS_FAILED then
    answer = NOT_FAILED
  elseif jobs_max >= 0 and jobs >= jobs_max then
    answer = 'jobs'
  elseif bytes_max >= 0 and bytes + payload_bytes(entry) > bytes_max then
    answer = 'bytes'
  else
    retry(entry, record, settled)
  end
  out[#out + 1] = answer
end

if retried > 0 then
  clock.save()
  local state = load_text(jobs, bytes) .. ' ' .. first .. ' ' .. total .. ' ' .. slice .. ' ' .. here
  call('HSET', prefix .. ':tenants', '', entry_number(last_entry), tenant, state)
  local is_news = false
  for tenant_queue in pairs(ready) do is_news = call('SADD', prefix .. ':ready', tenant_queue) > 0 or is_news end
  if is_news then call('PUBLISH', JOBS_CHANNEL, number) end
end
return out
