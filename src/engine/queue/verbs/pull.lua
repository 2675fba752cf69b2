-- Hands the owners of shards their next jobs.
--
-- KEYS[n]   prefix of a shard in the call
--
-- ARGV[1]   ms that a shard's time may be off
-- ARGV[2]   most due jobs per shard
-- ARGV[3]   most ready tenant queues per shard
-- ARGV[4]   most bytes of entries in the call
-- ARGV[5]   the owners' time, by the clock of their process
-- then for each shard:
--   1       lease token
--   2       1 names every tenant queue with queued jobs again (survey)
--   3       the shard's time as the owner estimates it ("" none)
--   4       the skew in its last answer, if that arrived promptly ("" none)
--   5       number of its tenant queues
-- and for each tenant queue:
--   1       its name
--   2       the last entry that was read ("" none)
--   3       most entries
--   4       most bytes
--
-- Returns for each shard false when the lease is not held, otherwise:
--   1       1 if more is waiting
--   2       ms until the next parked job is due (-1 none)
--   3       tenant queues with unpulled jobs
--   4       a list per tenant queue: 1 if it has more, then for each job the entry's id, the entry, and the reason for
--           which its recipient is suppressed ("" none; behind a blank the topic, if it is for that alone), or REPORTED if its provider has it according to a report;
--           behind it, of a job that an operator retried, "@<unix ms>"
--   5       the shard's time (ms)
--   6       what was quarantined
--   7       the skew by the owner's estimate, if that is clearly behind the shard's time (false: it is not)
--   8       Redis' time
--
-- *Running* is not stored per job: a job at or before its tenant queue's cursor is running. That costs one write per
-- shard.
-- Bytes are bytes of entries. The shards that read share the call's bytes evenly; bytes that one leaves go to the
-- shards after it. The call's first entry is handed out even if it is too large, a shard's first if the call has bytes
-- left for it, and a tenant queue's first if the shard has; no other entry exceeds the bytes of its tenant queue, its
-- shard or the call.

local slack, due_max, ready_max = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local call_room, is_call_first, caller_ms = tonumber(ARGV[4]), true, tonumber(ARGV[5])
-- Longer than a shard is without an owner.
local ESTIMATE_MS = 45000
-- Clocks have to be ahead for this long before the shard's time follows them, in pulls that are no further apart than
-- the gap.
local FOLLOW_AFTER_MS, GAP_MS = 10 * 60000, 60000
-- When the clocks are read again for a job that is due by the shard's time alone: a wrong one may be corrected.
local NOT_YET_MS = 60000
local function not_yet_ms(early_ms) return math.min(early_ms, math.max(NOT_YET_MS, early_ms / 8)) end
local SHARD_ARGS, QUEUE_ARGS = 5, 4
-- At most as many bytes may return to the tenant queues as may be read.
local due_room = call_room

-- How many entries to read at once, judged by the bytes of earlier entries: few should be read that do not fit.
local seen, seen_bytes = 0, 0
local function step_for(room, last)
  if seen == 0 then return last end
  return math.max(1, math.min(4 * last, math.floor(room * seen / math.max(1, seen_bytes)) + 1))
end
local function saw(bytes) seen, seen_bytes = seen + 1, seen_bytes + bytes end

-- Whether the shard's time has been behind both clocks for so long that it follows them: the machine slept, or its
-- clocks were wrong until now. Clocks that are ahead for only a minute have no effect.
local function follows(prefix, time, clocks)
  if clocks - time <= CLOCKS_APART_MS then return false end
  local key = prefix .. ':clocks-ahead'
  local since, last = (redis.call('GET', key) or ''):match('^(%d+) (%d+)$')
  if not since or time - last > GAP_MS then since = string.format('%.0f', time) end
  redis.call('SET', key, since .. ' ' .. string.format('%.0f', time), 'PX', GAP_MS)
  return time - since >= FOLLOW_AFTER_MS
end

-- Pulls for one shard: ARGV from `at` on. `readers`: shards that read from here on, including this one.
local function pull(prefix, at, readers)
  local token, survey, reckoned, confirmed, count = unpack(ARGV, at, at + SHARD_ARGS - 1)
  local first_queue, last_queue = at + SHARD_ARGS, at + SHARD_ARGS + QUEUE_ARGS * (count - 1)
  reckoned, confirmed = tonumber(reckoned), tonumber(confirmed)
  if not holds_lease(prefix, 'dispatcher', token) then return false end

  local later, parked, ready_key = prefix .. ':later', prefix .. ':parked', prefix .. ':ready'
  local said = {}

  -- The shard's time follows neither a step of Redis' clock nor the duration of calls: it is never behind an estimate,
  -- which is from before the call, and no more than the slack ahead of it. A call that arrives late carries an outdated
  -- estimate: it is answered as of the last pull and sets no time, which keeps it from hiding a clock step. An owner
  -- without an estimate continues from the last pull at the earliest: no job waits for a clock that was set back. An
  -- estimate that is clearly behind means that Redis' clock was set forward, or that this call was long on its way.
  -- Only the owner can tell, by how soon its answer arrives, and reports it in its next call. Until then the estimate
  -- holds for this call alone: had it become the shard's time, jobs scheduled meanwhile would be sent early by the
  -- delay. If an owner disappeared, the next one takes its estimate: late is better than early. A new owner has
  -- no estimate yet. If the shard's time is ahead of its own clock, Redis' clock is ahead, or was set back under
  -- the former owner and right since: it begins at its own, and not before the last pull, if there was one.
  local time, agreed = shard_clock(prefix)
  local estimate_key, estimated, is_new = prefix .. ':estimated-skew', false, not reckoned
  if reckoned and reckoned < agreed - slack then
    time = agreed
  else
    local known = redis.call('GET', estimate_key)
    if confirmed or (known and not reckoned) then time = now_ms() + (confirmed or tonumber(known)) end
    -- No further ahead than the duration of calls.
    if is_new and time - caller_ms > slack then time = caller_ms end
    if reckoned or redis.call('EXISTS', prefix .. ':skew') == 1 then time = math.max(time, reckoned or agreed) end
    local skew = time - now_ms()
    if reckoned and time - reckoned > slack then time, estimated = reckoned, reckoned - now_ms() end
    local clocks = math.min(now_ms(), caller_ms)
    if follows(prefix, time, clocks) then time, skew, estimated, is_new = clocks, clocks - now_ms(), false, true end
    if estimated then
      redis.call('SET', estimate_key, string.format('%.0f', estimated), 'PX', ESTIMATE_MS)
    elseif known then
      redis.call('DEL', estimate_key)
    end
    redis.call('SET', prefix .. ':skew', string.format('%.0f %.0f', skew, time))
  end

  -- A lent delivery may go on for the time of its loan. While the shard had no owner, a step of Redis' clock can have
  -- hidden how much of that is left: for a new owner the loan starts again, as it does when the shard's time steps.
  if is_new then
    local loans = redis.call('HGETALL', prefix .. ':loans')
    for i = 1, #loans, 2 do
      local due = redis.call('ZSCORE', later, loans[i])
      if due and tonumber(due) < time + tonumber(loans[i + 1]) then
        redis.call('ZADD', later, time + tonumber(loans[i + 1]), loans[i])
      end
    end
  end

  if survey == '1' then redis.call('SUNIONSTORE', ready_key, ready_key, prefix .. ':held') end

  -- Returns the record of a job that waits for its scheduled time, and that time. One that waits for a retry, or is
  -- lent, has a count.
  local function scheduled(job, text)
    local record = is_untried(text) and redis.call('HGET', bucket_key(prefix, job), bucket_field(job))
    local due = record and record_due(record)
    return due and record, tonumber(due or '0')
  end

  -- A parked job that cannot be read. It is removed from its tenant's load, which would otherwise never return to 0, as
  -- the tenant's deletion requires. Its tenant is read from its record, or without one from its tenant queue. A job
  -- that has ended is no longer in the load.
  local function quarantine_parked(job, value, tenant_queue, text, ended)
    quarantine(prefix, said, 'parked', job, value and 'no box and entry' or 'nothing is parked', value)
    local record = redis.call('HGET', bucket_key(prefix, job), bucket_field(job))
    local tenant, _, status = record_state(record or '')
    if not tenant then
      if is_tenant_queue(tenant_queue) then count_ended(ended, parse_tenant(tenant_queue), payload_bytes(text)) end
    elseif is_unfinished(status) then
      count_ended(ended, tenant, text and payload_bytes(text) or 0)
    end
  end

  -- Moves due jobs into their tenant queues. Returns whether more are due than may be moved at once.
  local function move_due()
    local due = redis.call('ZRANGEBYSCORE', later, '-inf', time, 'LIMIT', 0, due_max)
    if #due == 0 or due_room <= 0 then return #due > 0 end
    local moved, is_filled, filled, ended, step = {}, {}, {}, {}, 8
    local number = tonumber(redis.call('HGET', prefix .. ':tenants', '') or '0')
    local looked, clock_ms = 0, pick_median(now_ms(), caller_ms, time)
    while looked < #due and due_room > 0 do
      step = step_for(due_room, step)
      local first = looked + 1
      local values = redis.call('HMGET', parked, unpack(due, first, math.min(first + step - 1, #due)))
      for i, value in ipairs(values) do
        if due_room <= 0 then break end
        local job = due[first + i - 1]
        local tenant_queue, _, text = read_parked(value or '')
        local is_readable = is_tenant_queue(tenant_queue) and is_entry(text)
        local record, due_ms = false, 0
        if is_readable then record, due_ms = scheduled(job, text) end
        looked = looked + 1
        if due_ms > clock_ms then
          redis.call('ZADD', later, string.format('%.0f', time + not_yet_ms(due_ms - clock_ms)), job)
        elseif is_readable then
          number = next_entry(number)
          add_entry(queue_key(prefix, tenant_queue), entry_id(number), text)
          -- From now on its record names its entry, like that of any other job.
          if record then
            redis.call('HSET', bucket_key(prefix, job), bucket_field(job), with_place(record, entry_id(number)))
          end
          due_room = due_room - #text
          saw(#text)
          if not is_filled[tenant_queue] then
            is_filled[tenant_queue] = true
            filled[#filled + 1] = tenant_queue
          end
          moved[#moved + 1] = job
        else
          quarantine_parked(job, value, tenant_queue, text, ended)
          moved[#moved + 1] = job
        end
      end
    end
    if #moved == 0 then return #due == due_max end
    redis.call('HDEL', parked, unpack(moved))
    redis.call('ZREM', later, unpack(moved))
    redis.call('HDEL', prefix .. ':loans', unpack(moved))
    redis.call('HSET', prefix .. ':tenants', '', entry_number(number))
    unload(prefix, ended)
    if #filled > 0 then redis.call('SADD', ready_key, unpack(filled)) end
    return looked < #due or #due == due_max
  end
  local more_due = move_due()

  local ready, popped = {}, redis.call('SPOP', ready_key, ready_max)
  for _, name in ipairs(popped) do
    if is_tenant_queue(name) then
      ready[#ready + 1] = name
    else
      quarantine(prefix, said, 'box', name, 'not the name of a box', '')
    end
  end
  if #ready > 0 then redis.call('SADD', prefix .. ':held', unpack(ready)) end

  local room, is_first = math.floor(call_room / readers), true
  local function read_queue(tenant_queue, after, entries_max, queue_room)
    local key, from, read, step = queue_key(prefix, tenant_queue), after == '' and '-' or '(' .. after, {}, 4
    if room <= 0 and not (is_first and call_room > 0) then return read, true end
    while true do
      -- Reads one more than requested, which shows whether there are more.
      step = math.min(step_for(math.min(room, queue_room), step), entries_max + 1 - #read)
      local entries = redis.call('XRANGE', key, from, '+', 'COUNT', step)
      for _, entry in ipairs(entries) do
        local id, text = get_id(entry), get_text(entry)
        if is_entry(text) then
          local bytes = #text
          saw(bytes)
          local has_room = bytes <= room or is_call_first or (is_first and bytes <= call_room)
          if #read == entries_max or not has_room or (#read > 0 and bytes > queue_room) then return read, true end
          read[#read + 1] = entry
          room, queue_room, call_room = room - bytes, queue_room - bytes, call_room - bytes
          is_first, is_call_first = false, false
        else
          quarantine_entry(prefix, said, tenant_queue, id, 'not a box entry', text)
        end
        from = '(' .. id
      end
      if #entries < step then
        if #read == 0 and after == '' then redis.call('SREM', prefix .. ':held', tenant_queue) end
        return read, false
      end
    end
  end

  -- A job that is suppressed when it is first pulled never runs: its record stays pending although it was pulled.
  local function mark_suppressed(job)
    local bucket, field = bucket_key(prefix, job), bucket_field(job)
    local record = redis.call('HGET', bucket, field)
    if record then redis.call('HSET', bucket, field, with_status(record, STATUS_PENDING, STATUS_HELD_PENDING)) end
  end

  -- Only a job that was handed out before can have a report: it waited for another try, or its owner has changed. Also
  -- returns when it was retried ("" never): the count of such a job shows waits.
  local function read_reported(job)
    local record = redis.call('HGET', bucket_key(prefix, job), bucket_field(job))
    if not record then return false, '' end
    return is_with_provider(record), record_life(record):match(':(%d+)') or ''
  end

  -- A new owner reads a tenant queue from its start: running jobs stay running, because a cursor never goes back.
  local names, cursors, moved_cursors = {}, {}, {}
  for at = first_queue, last_queue, QUEUE_ARGS do names[#names + 1] = ARGV[at] end
  if #names > 0 then
    for i, cursor in ipairs(redis.call('HMGET', prefix .. ':cursor', unpack(names))) do cursors[names[i]] = cursor end
  end

  local lists = {}
  for at = first_queue, last_queue, QUEUE_ARGS do
    local tenant_queue, after, entries_max, bytes_max = unpack(ARGV, at, at + QUEUE_ARGS - 1)
    local read, more = read_queue(tenant_queue, after, tonumber(entries_max), tonumber(bytes_max))
    local suppressions = #read > 0 and read_suppressions(prefix, parse_tenant(tenant_queue))
    local cursor, list, is_first_pull = cursors[tenant_queue], { more and 1 or 0 }, false
    for _, entry in ipairs(read) do
      local id, text = get_id(entry), get_text(entry)
      local reason = suppressions and suppressed_for(suppressions, entry_job(text), entry_recipient(text), entry_topic(text)) or ''
      is_first_pull = is_first_pull or is_beyond(id, cursor)
      local is_reported, retried = false, ''
      if not (is_first_pull and is_untried(text)) then is_reported, retried = read_reported(entry_job(text)) end
      if is_reported then
        reason = REPORTED
      elseif reason ~= '' and is_first_pull then
        mark_suppressed(entry_job(text))
      end
      list[#list + 1] = id
      list[#list + 1] = text
      list[#list + 1] = retried == '' and reason or reason .. '@' .. retried
    end
    local last = #read > 0 and get_id(read[#read])
    if last and is_beyond(last, cursor) then
      cursors[tenant_queue] = last
      moved_cursors[#moved_cursors + 1] = tenant_queue
      moved_cursors[#moved_cursors + 1] = last
    end
    lists[#lists + 1] = list
  end
  if #moved_cursors > 0 then redis.call('HSET', prefix .. ':cursor', unpack(moved_cursors)) end

  local next_due = redis.call('ZRANGE', later, 0, 0, 'WITHSCORES')
  local wait = next_due[2] and math.max(0, next_due[2] - time) or -1
  return { (more_due or #popped == ready_max) and 1 or 0, wait, ready, lists, time, said, estimated, now_ms() }
end

local starts, reads, readers, at = {}, {}, 0, 6
for k = 1, #KEYS do
  local queues = tonumber(ARGV[at + SHARD_ARGS - 1])
  starts[k], reads[k] = at, queues > 0
  if reads[k] then readers = readers + 1 end
  at = at + SHARD_ARGS + QUEUE_ARGS * queues
end
local answers = {}
for k = 1, #KEYS do
  answers[k] = pull(KEYS[k], starts[k], math.max(1, readers))
  if reads[k] then readers = readers - 1 end
end
return answers
