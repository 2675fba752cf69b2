-- Ends a job that is not being delivered, because its tenant cancels it.
--
-- KEYS[1]   the shard's prefix
--
-- ARGV[1]   the shard's number
-- ARGV[2]   tenant
-- ARGV[3]   job id
--
-- Returns:
--   CANCELED  it has ended as canceled, by this call or an earlier one
--   ASKED     its owner has pulled it, and was requested to end it unless its delivery has begun
--   BEGUN     it is being delivered elsewhere, or its provider has it according to a report
--   ENDED     it has ended otherwise
--   UNKNOWN   there is no such job here, or it is another tenant's
--
-- Safe to repeat. A job that waits for its time or for a retry is with no owner, and neither is one in a tenant queue
-- behind the cursor: pull.lua moves the cursor in the same step in which it hands a job out.

local prefix, number, tenant, job = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local REASON = '{"reason":"' .. REASON_CANCELED .. '"}'
local bucket, field = bucket_key(prefix, job), bucket_field(job)
local record = redis.call('HGET', bucket, field) or ''
local owner, channel, status = record_state(record)
if owner ~= tenant then return UNKNOWN end
if not is_unfinished(status) then
  local is_canceled = status == STATUS_SUPPRESSED and record:find('\n' .. RESULT .. REASON, 1, true)
  return is_canceled and CANCELED or ENDED
end
if is_with_provider(record) then return BEGUN end

local tenant_queue, text = tenant .. '/' .. channel, nil
local parked = redis.call('HGET', prefix .. ':parked', job)
if parked then
  local _, token, parked_entry = read_parked(parked)
  if token ~= '' then return BEGUN end
  text = parked_entry
  redis.call('HDEL', prefix .. ':parked', job)
  redis.call('ZREM', prefix .. ':later', job)
else
  local id = record:match('^%S+ %S+ (%d+%-%d+)')
  text = id and find_entry(prefix, tenant_queue, id)
  local is_queued = text and entry_job(text) == job
  if not (is_queued and is_beyond(id, redis.call('HGET', prefix .. ':cursor', tenant_queue))) then
    redis.call('PUBLISH', CANCEL_CHANNEL, number .. ' ' .. tenant_queue .. ' ' .. job)
    return ASKED
  end
  remove_entries(prefix, tenant_queue, { id })
end

local attempts, waits, lines = record:match('^%S+ %a%a(%d+)%+?(%d*)[^\n]*(.*)$')
local kept
lines, kept = take_kept(lines)
-- An erased recipient must not enter the history again.
local is_erased = redis.call('HEXISTS', prefix .. ':suppressed:' .. tenant, ERASED_JOB .. job) == 1
if is_erased then kept = NO_REPORTS end
-- Like any other end, it has the number of one more settlement.
attempts = attempts + 1
local clock = event_clock(prefix)
local id, tries, life = clock.next(), record_tries(record), record_life(record)
local head = tenant .. ' ' .. channel .. STATUS_SUPPRESSED .. count_text(attempts, tonumber(waits) or 0)
local more = more_in_row(life, '', is_erased and '' or entry_tags(text))
local recipient = is_erased and '' or entry_recipient_json(text)
local ended_as = end_in_row(STATUS_SUPPRESSED, attempts, REASON, entry_template(text), recipient, tries, more)
local row = begin_row(tenant, job, channel)
local rows = { row .. event_in_row(EVENT_SUPPRESSED, id, REASON) .. ended_as .. ']' }
record = head .. end_of_head(life, tries) .. lines .. record_line(EVENT_SUPPRESSED, id, REASON)
record = with_kept(record, kept, { clock = clock, row = row, rows = rows })
redis.call('HSET', bucket, field, record .. '\n' .. RESULT .. REASON)
add_rows(prefix, rows)
clock.save()
local ended = {}
count_ended(ended, tenant, payload_bytes(text))
unload(prefix, ended)
return CANCELED
