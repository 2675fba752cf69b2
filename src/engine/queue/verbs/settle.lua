-- Records the outcomes of jobs: a final status with its event, a retry, that a screened job is now running, or a loan:
-- the job is still in flight while its owner gives up the lease.
--
-- KEYS[n]   prefix of a shard in the call
--
-- ARGV, for each shard:
--   1       lease token
--   2       1 if the jobs were lent under it (and the lease may have been given up since)
--   3       the shard's time as the owner estimates it ("" none)
--   4       number of its jobs
-- and for each job:
--   1       tenant queue
--   2       job id
--   3       entry id
--   4       "<attempts> <waits> <bytes> <status><how><type>": attempts and waits before this one, bytes of its payload,
--           then one letter each:
--             status: a final one, STATUS_RUNNING or STATUS_HELD_PENDING (a retry, the latter of a job that could not
--                     be screened yet), START (screened and running), LEND
--             how:    UNCOUNTED (a wait that costs no attempt), GIVEN_UP (without a clear answer), ERASED (its recipient is:
--                     the history gets no reports, which may name them), else -
--             type:   of the event, - none
--   5       "<event result>\n<job result>\n<template>\n<recipient>\n<try>" ("" if all are empty): JSON text, but a
--           retry's or loan's event result is the ms until it is due; behind them "\n<tags>" if it has tags; of a final
--           status behind that ("" no tags) a line "<type><result>" for each event about a further recipient
--
-- Returns for each shard false when the lease is not held, otherwise how many settlements were new, the quarantined
-- data, and the jobs that ended with success because of a report.
--
-- Safe to repeat: it skips a job whose record already counts this settlement, and a lent job that no longer waits under
-- exactly this token.
-- Reports that waited for the job's end (observe.lua) become events after the one that ends it. A job with such a
-- report is not retried, lent or given up: its provider has it, so it ends with success. Readers' reports do not count.
-- The row of a failure has the job's entry, if there is space for it: its content is kept in case of a retry.

local SHARD_ARGS, JOB_ARGS = 4, 5
local RECORD = '^%S+ %l([' .. STATUSES .. '])(%d+)%+?(%d*)'
local TEXTS = '^([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n?(.*)$'
-- Most ends have only their recipient to record.
local NO_RESULTS, REST_OF_TEXTS = '\n\n\n', '^([^\n]*)\n([^\n]*)\n?(.*)$'

-- Space for contents of failed jobs: some bytes in the outbox, which tenants share (each may have as much as is left),
-- and some per tenant and day.
local function kept_contents(prefix)
  local key, all, added, tenants = prefix .. ':keeping', nil, 0, {}
  local function load_share(tenant)
    local share = tenants[tenant]
    if share then return share end
    local texts = redis.call('HMGET', key, '', tenant)
    all = all or tonumber(texts[1] or '0')
    local today = tonumber(redis.call('GET', prefix .. ':kept:' .. tenant) or '0')
    share = { own = tonumber(texts[2] or '0'), today = today, added = 0 }
    tenants[tenant] = share
    return share
  end
  return {
    take = function(tenant, bytes)
      if bytes > KEPT_BYTES_MAX then return false end
      local share = load_share(tenant)
      if share.own + bytes > KEPT_OUTBOX_BYTES_MAX - all - bytes or share.today + bytes > KEPT_DAY_BYTES_MAX then return false end
      all, added = all + bytes, added + bytes
      share.own, share.today, share.added = share.own + bytes, share.today + bytes, share.added + bytes
      return true
    end,
    save = function()
      if added == 0 then return end
      redis.call('HINCRBY', key, '', added)
      for tenant, share in pairs(tenants) do
        if share.added > 0 then
          local day = prefix .. ':kept:' .. tenant
          redis.call('HINCRBY', key, tenant, share.added)
          if redis.call('INCRBY', day, share.added) == share.added then redis.call('PEXPIRE', day, KEPT_DAY_MS) end
        end
      end
    end,
  }
end

-- Settles the jobs of one shard: ARGV from `first` to `last`.
local function settle(prefix, token, were_lent, reckoned, first, last)
  if not were_lent and not holds_lease(prefix, 'dispatcher', token) then return false end

  local said, reported = {}, {}

  -- Records are read and written one bucket at a time; for lent jobs, also their loans.
  local buckets, bucket_at, field_at, jobs = {}, {}, {}, {}
  for at = first, last, JOB_ARGS do
    local job = ARGV[at + 1]
    local key, field = bucket_key(prefix, job), bucket_field(job)
    local bucket = buckets[key]
    if not bucket then
      bucket = { fields = {}, records = {}, writes = {}, forgotten = {} }
      buckets[key] = bucket
    end
    bucket.fields[#bucket.fields + 1] = field
    bucket_at[at], field_at[at] = bucket, field
    if were_lent then jobs[#jobs + 1] = job end
  end
  if last < first then return { 0, said, reported } end
  for key, bucket in pairs(buckets) do
    for i, record in ipairs(redis.call('HMGET', key, unpack(bucket.fields))) do
      if record then bucket.records[bucket.fields[i]] = record else bucket.forgotten[bucket.fields[i]] = true end
    end
  end
  local lent = {}
  if were_lent then
    for i, value in ipairs(redis.call('HMGET', prefix .. ':parked', unpack(jobs))) do
      local _, lent_under, entry = read_parked(value or '')
      if lent_under == token then lent[jobs[i]] = entry end
    end
  end

  local contents = kept_contents(prefix)
  local clock, rows, done, tenant_queues, settled = event_clock(prefix), {}, {}, {}, 0
  local ended, parked, later, unparked, loans = {}, {}, {}, {}, {}

  local function load_entry(tenant_queue, id, job)
    if were_lent then return lent[job] end
    return find_entry(prefix, tenant_queue, id)
  end

  -- A parked job is due by its owner's estimate of the time: a step of Redis' clock since the last pull does not move
  -- it. If the call was late, or the shard has another owner by now, a later shard time has been agreed on.
  local waits_begin
  local function park(job, text, wait_ms)
    if not waits_begin then
      local time, agreed = shard_clock(prefix)
      waits_begin = reckoned == '' and time or math.max(tonumber(reckoned), agreed)
    end
    parked[#parked + 1] = job
    parked[#parked + 1] = text
    later[#later + 1] = waits_begin + tonumber(wait_ms)
    later[#later + 1] = job
  end

  -- Adds the events about further recipients: lines of "<type><result>".
  local function take_further(record, row, lines)
    for type, result in lines:gmatch('(%a)([^\n]*)') do
      if not has_event(record, type, result) then
        local id = clock.next()
        record = record .. record_line(type, id, result)
        rows[#rows + 1] = row .. event_in_row(type, id, result) .. ']'
      end
    end
    return record
  end

  for at = first, last, JOB_ARGS do
    local tenant_queue, job, id, texts = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 4]
    local attempts, waits, bytes, status, how, type = ARGV[at + 3]:match('^(%d+) (%d+) (%d+) (%a)(.)(.)$')
    attempts, waits = tonumber(attempts), tonumber(waits)
    local detail, result, template, recipient, try, tags = '', '', '', '', '', ''
    if texts:sub(1, 3) == NO_RESULTS then
      recipient, try, tags = texts:match(REST_OF_TEXTS, 4)
    elseif texts ~= '' then
      detail, result, template, recipient, try, tags = texts:match(TEXTS)
    end
    local further = ''
    local end_of_tags = tags:find('\n', 1, true)
    if end_of_tags then tags, further = tags:sub(1, end_of_tags - 1), tags:sub(end_of_tags + 1) end
    local tenant, channel = tenant_queue:sub(1, -3), tenant_queue:sub(-1)
    local bucket, field = bucket_at[at], field_at[at]
    local record = bucket.records[field]
    local current, counted, waited = (record or ''):match(RECORD)
    if not current then
      if record then
        quarantine(prefix, said, 'record', bucket_key(prefix, job) .. ' ' .. field, 'not a job record', record)
      end
      record, current, counted, waited = tenant .. ' ' .. channel .. STATUS_PENDING .. '0', STATUS_PENDING, 0, 0
      bucket.records[field] = nil
    end

    local is_new = is_unfinished(current) and counted + (tonumber(waited) or 0) <= attempts + waits
    if were_lent then is_new = is_new and lent[job] ~= nil end
    local is_start, is_lent = status == START, status == LEND
    local is_retry = status == STATUS_RUNNING or status == STATUS_HELD_PENDING
    -- If Redis lost its last writes, the entry may be gone and the job may wait elsewhere, as before this attempt: a
    -- retry is then not counted; otherwise the next attempt would be taken for one that is already counted.
    local is_failure = status == STATUS_FAILED
    local entry = is_new and (is_retry or is_lent or is_failure) and load_entry(tenant_queue, id, job)
    if is_start and is_new and current == STATUS_HELD_PENDING then
      record = with_status(record, STATUS_HELD_PENDING, STATUS_RUNNING)
      bucket.records[field], bucket.writes[field] = record, record
    elseif is_new and not is_start and (entry or not (is_retry or is_lent)) then
      settled = settled + 1
      local line_end = record:find('\n', 1, true)
      local all_lines = line_end and record:sub(line_end) or ''
      local lines, kept = take_kept(all_lines)
      if how == ERASED then kept = NO_REPORTS end
      local is_over = not (is_retry or is_lent)
      if how == UNCOUNTED then
        waits = waits + 1
      elseif not is_lent then
        attempts = attempts + 1
      end
      -- A job that has been running must not appear pending again; a lent job keeps its status.
      if status == STATUS_HELD_PENDING and current == STATUS_RUNNING then status = STATUS_RUNNING end
      if is_lent then status = current == STATUS_HELD_PENDING and STATUS_HELD_PENDING or STATUS_RUNNING end
      if #kept > 0 and (not is_over or how == GIVEN_UP) and is_with_provider(all_lines) then
        is_over, status, type, detail, result, try = true, STATUS_SUCCESS, EVENT_SENT, '', '', ''
        attempts = math.max(1, attempts)
        reported[#reported + 1] = job
      end
      if were_lent then
        unparked[#unparked + 1] = job
        lent[job] = nil
      end
      -- The try that ends the job goes to the event store alone.
      local tries, life = record_tries(record), record_life(record)
      local all_tries = with_try(tries, try)
      if not is_over then tries = all_tries end
      if not is_over then lines = all_lines end
      local count = count_text(attempts, waits)
      record = tenant .. ' ' .. channel .. status .. count .. end_of_head(life, tries) .. lines
      if is_over then
        -- A forgotten job was not counted.
        if not bucket.forgotten[field] then count_ended(ended, tenant, bytes) end
        local row, event = begin_row(tenant, job, channel), clock.next()
        local content = ''
        if status == STATUS_FAILED and entry and entry_job(entry) == job and contents.take(tenant, payload_bytes(entry)) then
          content = with_count(entry, count)
        end
        local ended_as = end_in_row(status, attempts, result, template, recipient, all_tries, more_in_row(life, content, tags))
        record = record .. record_line(type, event, detail)
        rows[#rows + 1] = row .. event_in_row(type, event, detail) .. ended_as .. ']'
        if further ~= '' then record = take_further(record, row, further) end
        if #kept > 0 then record = with_kept(record, kept, { clock = clock, row = row, rows = rows }) end
        if result ~= '' then record = record .. '\n' .. RESULT .. result end
      else
        -- The record of a lent job shows that it was handed out, even before any attempt counts: a report may arrive
        -- before it returns.
        if is_lent then count = attempts .. '+' .. string.format('%.0f', waits) end
        park(job, parked_text(tenant_queue, is_lent and token or '', with_count(entry, count)), detail)
        loans[job] = is_lent and detail or nil
      end
      bucket.records[field], bucket.writes[field] = record, record
    end
    -- If Redis lost its last writes, an entry's id may have been used again: a repeat may only remove an entry that is
    -- still its own.
    local is_own = is_new
    if is_start or were_lent then
      is_own = false
    elseif not is_new then
      local found = find_entry(prefix, tenant_queue, id)
      is_own = found and entry_job(found) == job
    end
    local ids = done[tenant_queue]
    if not ids then
      ids = {}
      done[tenant_queue] = ids
      tenant_queues[#tenant_queues + 1] = tenant_queue
    end
    if is_own then ids[#ids + 1] = id end
  end

  for key, bucket in pairs(buckets) do
    local fields = {}
    for field, record in pairs(bucket.writes) do
      fields[#fields + 1] = field
      fields[#fields + 1] = record
    end
    if #fields > 0 then redis.call('HSET', key, unpack(fields)) end
  end
  if #rows > 0 then
    add_rows(prefix, rows)
    clock.save()
    contents.save()
  end
  unload(prefix, ended)
  if #unparked > 0 then
    redis.call('HDEL', prefix .. ':parked', unpack(unparked))
    redis.call('ZREM', prefix .. ':later', unpack(unparked))
    redis.call('HDEL', prefix .. ':loans', unpack(unparked))
  end
  if #parked > 0 then
    redis.call('HSET', prefix .. ':parked', unpack(parked))
    redis.call('ZADD', prefix .. ':later', unpack(later))
  end
  for job, for_ms in pairs(loans) do redis.call('HSET', prefix .. ':loans', job, for_ms) end
  if were_lent then return { settled, said, reported } end
  for _, tenant_queue in ipairs(tenant_queues) do
    remove_entries(prefix, tenant_queue, done[tenant_queue])
  end
  return { settled, said, reported }
end

local answers, at = {}, 1
for k = 1, #KEYS do
  local token, were_lent, reckoned, jobs = unpack(ARGV, at, at + SHARD_ARGS - 1)
  local first = at + SHARD_ARGS
  at = first + JOB_ARGS * jobs
  answers[k] = settle(KEYS[k], token, were_lent == '1', reckoned, first, at - 1)
end
return answers
