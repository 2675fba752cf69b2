-- Adds reports about jobs: at most one event per job and type (clicked: per job, type and result).
--
-- KEYS[n]   prefix of a shard in the call
--
-- ARGV, for each shard:
--   1       number of its items
-- and for each item:
--   1       tenant
--   2       job id
--   3       event type
--   4       result
--   5       recipient to suppress ("" none)
--   6       reason
--   7       the job's record from the event store ("" not asked yet)
--
-- Returns recorded | duplicate | unknown | kept for each item.
--
-- A parked job ends with success, because its provider has it, unless a reader reports. Any other job that has not ended gets a
-- line that settle.lua turns into an event when the job ends; the line also tells pull.lua not to hand the job out again.

local out, at = {}, 1
local ITEM_ARGS = 7

for k = 1, #KEYS do
  local prefix, items, rows, ended, back = KEYS[k], tonumber(ARGV[at]), {}, {}, {}
  local clock = event_clock(prefix)
  at = at + 1
  for _ = 1, items do
    local tenant, job, type, result, recipient, reason, told = unpack(ARGV, at, at + ITEM_ARGS - 1)
    local bucket, field = bucket_key(prefix, job), bucket_field(job)
    local stored = redis.call('HGET', bucket, field)
    local record = stored or told
    local owner, channel, status = record_state(record)
    local is_early = status and is_unfinished(status)
    local parked = is_early and redis.call('HGET', prefix .. ':parked', job)
    local answer = 'recorded'
    if owner ~= tenant then
      answer = 'unknown'
    elseif has_event(record, type, result) or (is_early and has_kept(record, type, result)) then
      answer = 'duplicate'
    elseif is_early and (not parked or is_by_reader(type)) then
      answer = 'kept'
      redis.call('HSET', bucket, field, record .. record_line(KEPT .. type, '', result))
    else
      local row = begin_row(tenant, job, channel)
      if parked then
        redis.call('HDEL', prefix .. ':parked', job)
        redis.call('ZREM', prefix .. ':later', job)
        redis.call('HDEL', prefix .. ':loans', job)
        count_ended(ended, tenant, payload_bytes(parked))
        local _, _, text = read_parked(parked)
        local attempts, waits, lines = record:match('^%S+ %a%a(%d+)%+?(%d*)[^\n]*(.*)$')
        attempts = math.max(1, tonumber(attempts))
        local kept
        lines, kept = take_kept(lines)
        local id = clock.next()
        local tries, life = record_tries(record), record_life(record)
        record = tenant .. ' ' .. channel .. STATUS_SUCCESS .. count_text(attempts, tonumber(waits) or 0)
          .. end_of_head(life, tries) .. lines .. record_line(EVENT_SENT, id, '')
        local template, recipient = entry_template(text), entry_recipient_json(text)
        local ended_as = end_in_row(STATUS_SUCCESS, attempts, '', template, recipient, tries, more_in_row(life, '', entry_tags(text)))
        rows[#rows + 1] = row .. event_in_row(EVENT_SENT, id, '') .. ended_as .. ']'
        record = with_kept(record, kept, { clock = clock, row = row, rows = rows })
      end
      if not (parked and type == EVENT_SENT) then
        local id = clock.next()
        record = record .. record_line(type, id, result)
        rows[#rows + 1] = row .. event_in_row(type, id, result) .. ']'
      end
      -- A job that returns from the event store is removed again.
      if not stored then back[#back + 1] = job end
      redis.call('HSET', bucket, field, record)
    end
    if recipient ~= '' and (answer == 'recorded' or answer == 'kept') then
      redis.call('HSET', prefix .. ':suppressed:' .. tenant, recipient, reason)
    end
    out[#out + 1] = answer
    at = at + ITEM_ARGS
  end
  if #rows > 0 then
    add_rows(prefix, rows)
    clock.save()
  end
  if #back > 0 then
    redis.call('RPUSH', prefix .. ':leaving', string.format('%.0f', agreed_ms(prefix)) .. ' ' .. table.concat(back, ' '))
  end
  unload(prefix, ended)
end
return out
