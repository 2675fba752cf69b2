-- Shared by all scripts. Names in capitals come from codec.ts, keys.ts and the script's caller (script.ts).
--
-- KEYS[n] is a shard's prefix P; every key of the shard begins with it:
--   P:box:<tenant queue>   stream  one entry per job, field p = "<job id> <channel><count> <recipient>\n<payload>";
--                                  SCREENING after the count: pending until its content was screened; after the
--                                  recipient a tab and the template as JSON text ("" none), and a tab, the SHA-256 and
--                                  the bytes of a payload that is stored elsewhere, each only if there is one; the
--                                  job's extras begin the payload, or follow these bytes
--                                  (extras.ts);
--                                  ids "<n>-0" with n from the counter in P:tenants;
--                                  a tenant queue's name is "<tenant>/<channel>": each channel of a tenant has its
--                                  own, so that none waits for another
--   P:ready                set     tenant queues with entries that were not pulled
--   P:held                 set     tenant queues with entries that were announced to the owner
--   P:cursor               hash    tenant queue -> last entry that was pulled
--   P:later                zset    job id -> when it is due (shard time, ms)
--   P:parked               hash    job id -> "<tenant queue> <entry>" of a job that waits in P:later, for its retry or for
--                                  the time that it is scheduled for;
--                                  "<tenant queue>!<token> <entry>" of one that was lent under the lease with that
--                                  token
--   P:loans                hash    job id -> how long (ms) it was lent for, while it waits in P:later
--   P:skew                 string  "<ms that the shard's time is ahead of Redis' clock> <the shard's time at the last pull>"
--   P:estimated-skew       string  the first of these by the estimate of an owner that was clearly behind, until it has
--                                  reported why:
--                                  expires after 45 s
--   P:clocks-ahead         string  "<since> <until>", the shard's times of the first and the last pull in a row that found both Redis'
--                                  clock and the owner's ahead of the shard's time
--   P:jobs:<bucket>        hash    job records (below)
--   P:tenants              hash    tenant -> "<jobs> <bytes of their payloads>" of unfinished jobs, and its rate
--                                  window " <first slice> <total> <slice> <requests in that slice>";
--                                  "" -> the number of the last queue entry
--   P:outbox               stream  one entry per batch, field r = its rows, one JSON array per line; field c = their number
--   P:mark                 string  "<first> <last>" entry of the outbox piece that is being recorded; if it is written
--                                  together with others: "<first> <last> <group>\n<list>", the list has one line per piece,
--                                  "<prefix> <first> <last>", the group is derived from it
--   P:clock                string  last event id, which tells the time
--   P:recorded             string  last event id that is in the event store
--   P:leaving              list    "<shard time, ms> <job id> <job id> ..." of finished jobs, and when their end was recorded (by
--                                  the shard's time at the last pull)
--   P:lease:<role>         hash    owner, token, renewals; no clock ends it
--   P:epoch                string  counter behind the tokens
--   P:suppressed:<tenant>  hash    recipient, for one topic alone "<recipient>\t<topic>" -> reason; "" if it was removed before the index was complete;
--                                  ERASED_NAME .. SHA-1 of key and recipient, and the topic likewise -> reason, for an erased recipient;
--                                  ERASED_NAME -> that key; ERASED_JOB .. job id -> ERASED, for a job that ends because its
--                                  recipient was erased; ERASED_JOB -> their number
--   P:erased-copy:<tenant>:<SHA-256 of the recipient>
--                          string  when the recipient was erased (unix ms): messages accepted before are no longer
--                          copied to them
--   P:suppressions-loaded  string  exists once P:suppressed:* hold all suppressions of the registry
--   P:allowance:<tenant queue>:<day>
--                          string  units taken from the tenant queue's allowance for a UTC day (days since 1970)
--   P:rate:<tenant>        hash    <earlier slice of the tenant's rate window> -> requests; last -> of a window that was used up
--                                  within one slice, "<slice> <requests> <ms of the last one>"
--   P:repeated:<job>       string  exists for a while after a repeat of the accept call that starts with this job
--   P:idem:<tenant>:<key>  string  "<job id> <fingerprint>"; of a batch, its base job id
--   P:claims:<tenant>      hash    hour (unix) -> bytes that the idempotency keys take that were first used in it
--   P:batch:<base job id>  string  "<first>-<last> " for each range of the messages of a batch under a key that were queued
--   P:batch:<base job id>:refused
--                          string  gzip of the refusals in the batch's answer; exists once the answer is complete and has some
--   P:keeping              hash    tenant -> bytes of contents of its failed jobs that are in the outbox; "" -> of all tenants
--   P:kept:<tenant>        string  bytes of contents that were kept of its failed jobs since a day at most
--   P:quarantine           list    "<unix ms> <what> <where>: <why>\n<text>" of unreadable data, the newest first
-- Outside the shards are wb:{meta} (format.ts), wb:{members}:<role>:beats (members.lua), wb:{members}:status* (status.lua) and wb:{ref<tag>}:<hour>:<bucket>
-- (references.ts).
--
-- A job record is text. Its first line: "<tenant> <channel><status><count> <entry id><life> <tries>"; the parts after
-- the count are optional; tries that did not end the job are JSON objects with a tab between them. A job that was
-- retried after a failure has a <life>, "@<event id>:<unix ms>": events up to this id belong to earlier lives, and the
-- operator retried it then. A former release reads it as part of the entry's id. A job that waits for the time that it
-- is scheduled for has LATER .. <unix ms> instead of the entry's id. Then one line per event: "<type><event id>
-- <result>" (the result is left out when it is {}), and at most one line "=<result>" of the job.
-- Until the job ends, the record also holds reports that wait for its end, at most one per type (clicked: per type and
-- result; of a further recipient, whom the result names first: per type and recipient): "<KEPT><type> <result>".
-- A count is "<attempts>", or "<attempts>+<waits>" after uncounted waits, and in an entry that was lent. The sum of both is
-- the number of the settlement, which identifies its repeats. A retried job begins with no attempts and a multiple of
-- SETTLEMENTS_PER_LIFE waits.
-- Channels have one letter each (app/channels.ts), statuses and event types too (codec.ts).
--
-- Shard time is Redis' clock plus P:skew, which pull.lua keeps in step with the owner's monotonic clock: if Redis' clock is
-- set forward or back, due times stay as they were. If both Redis' clock and the owner's stay ahead of it, it follows them.

-- A script uses a single time from its beginning to its end.
local script_ms
local function now_ms()
  if not script_ms then
    local time = redis.call('TIME')
    script_ms = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  return script_ms
end

-- Returns the shard's time now, and the time agreed on by the last pull, which later steps of Redis' clock have not
-- moved.
local function shard_clock(prefix)
  local skew, agreed = (redis.call('GET', prefix .. ':skew') or ''):match('^(-?%d+) ?(%d*)$')
  local time = now_ms() + tonumber(skew or '0')
  return time, tonumber(agreed or '') or time
end
-- Returns when a wait begins: now, or if Redis' clock was set back since the last pull, that pull's time.
local function waits_from(prefix) return math.max(shard_clock(prefix)) end
-- The time by which finished jobs leave.
local function agreed_ms(prefix) return (select(2, shard_clock(prefix))) end

-- Returns the median of Redis', the caller's and the shard's clock: none of them is trusted alone.
local function pick_median(redis_ms, caller_ms, shard_ms)
  local first, last = math.min(redis_ms, caller_ms), math.max(redis_ms, caller_ms)
  return math.max(first, math.min(last, shard_ms))
end
-- Returns when a job scheduled for `due` (unix ms) is due by the shard's time, and at what time of day; false: now.
-- `caller` is the caller's time, or "-<ms>", the wait from now on regardless of the time. If the clocks differ, the
-- first one counts: they are read again then.
local function due_at(prefix, due, caller)
  local from, caller_ms = waits_from(prefix), tonumber(caller)
  due = tonumber(due)
  if caller_ms < 0 then return from - caller_ms, math.min(now_ms(), from) - caller_ms end
  local middle, last = pick_median(now_ms(), caller_ms, from), math.max(now_ms(), caller_ms, from)
  if due <= middle then return false end
  local is_apart = last - math.min(now_ms(), caller_ms, from) > CLOCKS_APART_MS
  return from + math.max(0, due - (is_apart and last or middle)), due
end

-- Ids never go back, so a clock that is days ahead for a moment would date all later events wrong for days: no id is
-- ahead of the time that the last pull agreed on by more than CLOCKS_APART_MS.
local function event_clock(prefix)
  local last = tonumber(redis.call('GET', prefix .. ':clock') or '0')
  local first = (math.min(now_ms(), agreed_ms(prefix) + CLOCKS_APART_MS) - EVENT_EPOCH_MS) * EVENT_IDS_PER_MS
  return {
    next = function()
      last = math.max(last + 1, first)
      return string.format('%.0f', last)
    end,
    save = function() redis.call('SET', prefix .. ':clock', string.format('%.0f', last)) end,
  }
end

-- A job id without its field names the bucket; the ninth character is a dash, which the bucket's name leaves out.
local DASH_AT, FIELD_AT = 9, 13
local function bucket_key(prefix, job)
  return prefix .. ':jobs:' .. job:sub(1, DASH_AT - 1) .. job:sub(DASH_AT + 1, FIELD_AT - 1)
end
local function bucket_field(job) return job:sub(FIELD_AT) end

local function queue_key(prefix, tenant_queue) return prefix .. ':box:' .. tenant_queue end
local function is_tenant_queue(text) return type(text) == 'string' and text:find('^[^/]+/%l$') ~= nil end
local function parse_tenant(tenant_queue) return tenant_queue:match('^[^/]+') end

local function holds_lease(prefix, role, token)
  return redis.call('HGET', prefix .. ':lease:' .. role, 'token') == token
end

-- The number of a queue entry: rises for as long as the shard exists, even if Redis lost its last writes. This many per
-- millisecond are more than any shard takes, and exceed any id that was a time.
local ENTRIES_PER_MS = 256
local function next_entry(last)
  return math.max(last + 1, (now_ms() - EVENT_EPOCH_MS) * ENTRIES_PER_MS)
end
local function entry_number(number) return string.format('%.0f', number) end
local function entry_id(number) return string.format('%.0f-0', number) end

-- A queue entry's text and its parts.
local ENTRY_HEAD = '^ %l%d+%+?%d*' .. SCREENING .. '? [^\n]*\n'
local NEVER_TRIED = '^0[ ' .. SCREENING .. ']'
local DASH = ('-'):byte()
local function is_entry(text)
  return type(text) == 'string' and text:byte(DASH_AT) == DASH and text:find(ENTRY_HEAD, JOB_ID_CHARS + 1) ~= nil
end
local function entry_job(text) return text:sub(1, JOB_ID_CHARS) end
local function entry_channel(text) return text:sub(CHANNEL_AT, CHANNEL_AT) end
local function entry_recipient(text) return text:match('^%S+ %S+ ([^\t\n]*)') end
local function entry_template(text) return text:match('^[^\t\n]*\t([^\t\n]*)') or '' end
-- Built when a text needs it, because this code runs before every script.
local short_escapes
local function escape(char)
  short_escapes = short_escapes
    or { ['"'] = '\\"', ['\\'] = '\\\\', ['\b'] = '\\b', ['\t'] = '\\t', ['\n'] = '\\n', ['\f'] = '\\f', ['\r'] = '\\r' }
  return short_escapes[char] or string.format('\\u%04x', char:byte())
end
local function json_text(text) return '"' .. text:gsub('[%z\1-\31"\\]', escape) .. '"' end
-- The texts that begin a job's extras, which follow the trace if there is one (extras.ts).
local EXTRAS = {
  '^[^\n]*\n{"%$job":"',
  '^[^\n]*\n{"%$trace":"[^"]*","%$job":"',
  '^[^\t\n]*\t[^\t\n]*\t[^\t\n]*\t[^\t\n]*\t',
}
-- Returns a job's tags ("" none), the time that it is scheduled for (Unix time in ms, "" none), and the position of
-- both in the text.
local function entry_extras(text)
  for _, before in ipairs(EXTRAS) do
    local _, last = text:find(before)
    local tags, at, due = text:match('^([^|"\n]*)|()(%d*)', (last or #text) + 1)
    if tags then return tags, due, at end
  end
  return '', '', nil
end
local function entry_tags(text) return (entry_extras(text)) end
-- Returns an entry's topic ("" none): the last of its extras.
local function entry_topic(text)
  local at = (text:find('\n', 1, true) or #text) + 1
  if at > #text then return text:match('^[^\t\n]*\t[^\t\n]*\t[^\t\n]*\t[^\t\n]*\t[^\t\n]*\t([^\t\n]+)\n$') or '' end
  at = text:match('^{"%$trace":"[^"]*",()', at) or at + 1
  at = text:match('^"%$job":"[^"]*",()', at) or at
  return text:match('^"%$topic":"([^"]*)"', at) or ''
end
local function entry_due(text) return (select(2, entry_extras(text))) end
local function with_due(text, due)
  local _, before, at = entry_extras(text)
  return at and text:sub(1, at - 1) .. due .. text:sub(at + #before) or text
end
local function entry_recipient_json(text) return json_text(entry_recipient(text) or '') end
local function is_untried(text) return text:find(NEVER_TRIED, COUNT_AT) ~= nil end
local function with_count(text, count) return (text:gsub('^(%S+ %a)%d+%+?%d*', '%1' .. count, 1)) end

-- A tenant queue's stream has one field per entry: the text.
local TEXT_FIELD = 'p'
local function add_entry(key, id, text) redis.call('XADD', key, id, TEXT_FIELD, text) end
local function get_id(entry) return entry[1] end
local function get_text(entry) return entry[2][2] end
local function find_entry(prefix, tenant_queue, id)
  local entry = redis.call('XRANGE', queue_key(prefix, tenant_queue), id, id)[1]
  return entry and get_text(entry)
end

-- Whether an entry comes after a tenant queue's cursor (false: there is none).
local function is_beyond(entry, cursor)
  local ms, seq = entry:match('^(%d+)-(%d+)$')
  local cursor_ms, cursor_seq = (cursor or ''):match('^(%d+)-(%d+)$')
  if not cursor_ms then return true end
  ms, cursor_ms = tonumber(ms), tonumber(cursor_ms)
  return ms > cursor_ms or (ms == cursor_ms and tonumber(seq) > tonumber(cursor_seq))
end
local function remove_entries(prefix, tenant_queue, ids)
  local key = queue_key(prefix, tenant_queue)
  if #ids > 0 then redis.call('XDEL', key, unpack(ids)) end
  if redis.call('XLEN', key) == 0 then
    redis.call('DEL', key)
    redis.call('HDEL', prefix .. ':cursor', tenant_queue)
    redis.call('SREM', prefix .. ':held', tenant_queue)
  end
end

-- A parked job: its tenant queue, the token of the lease that it was lent under ("" not lent) and its entry.
local LENT = '!'
local PARKED_AT = '^([^' .. LENT .. ']+)' .. LENT .. '?(.*)$'
local function parked_text(tenant_queue, token, text)
  return tenant_queue .. (token == '' and '' or LENT .. token) .. ' ' .. text
end
local function read_parked(parked)
  local space = parked:find(' ', 1, true)
  if not space then return nil end
  local tenant_queue, token = parked:sub(1, space - 1):match(PARKED_AT)
  return tenant_queue, token, parked:sub(space + 1)
end

-- The outbox has two fields per entry: the number of rows, and the rows.
local COUNT_FIELD, ROWS_FIELD = 'c', 'r'
local function add_rows(prefix, rows)
  redis.call('XADD', prefix .. ':outbox', '*', COUNT_FIELD, #rows, ROWS_FIELD, table.concat(rows, '\n'))
end
local function parse_rows(entry) return tonumber(entry[2][2]), entry[2][4] end

-- Returns a job's share of its tenant's load: the bytes of its payload, wherever that is stored.
local function payload_bytes(entry)
  local head = entry:find('\n', 1, true) or #entry
  return #entry > head and #entry - head or tonumber(entry:match('\t%x+ (%d+)[^\n]*\n$') or '0')
end

-- Returns a tenant's state: unfinished jobs and their bytes, and its rate window. Unreadable state counts as empty.
local function tenant_state(text)
  local jobs, bytes, first, total, slice, here = (text or ''):match('^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  if not jobs then return 0, 0, 0, 0, 0, 0 end
  return tonumber(jobs), tonumber(bytes), tonumber(first), tonumber(total), tonumber(slice), tonumber(here)
end
local function load_text(jobs, bytes) return string.format('%.0f %.0f', jobs, bytes) end

local HOUR_MS = 60 * 60 * 1000
-- Returns the hour in P:claims of a key that is claimed now, and of one that expires now.
local function claim_hours(kept_ms)
  return math.floor(now_ms() / HOUR_MS), math.floor((now_ms() - kept_ms) / HOUR_MS)
end

-- Counts bytes that a tenant's idempotency keys take from now on. Once an hour it removes expired hours.
local function note_claims(prefix, tenant, bytes, kept_ms)
  local key, hour, first = prefix .. ':claims:' .. tenant, claim_hours(kept_ms)
  if redis.call('HINCRBY', key, hour, bytes) ~= bytes then return end
  local past = {}
  for _, each in ipairs(redis.call('HKEYS', key)) do
    if tonumber(each) < first then past[#past + 1] = each end
  end
  if #past > 0 then redis.call('HDEL', key, unpack(past)) end
  -- Keys are counted here for up to an hour from now.
  redis.call('PEXPIRE', key, kept_ms + 2 * HOUR_MS)
end

-- Subtracts ended jobs from their tenants' loads: tenant -> { jobs, bytes }. A load never falls below 0, even for jobs
-- that were never counted.
local function unload(prefix, ended)
  local tenants, writes = {}, {}
  for tenant in pairs(ended) do tenants[#tenants + 1] = tenant end
  if #tenants == 0 then return end
  for i, text in ipairs(redis.call('HMGET', prefix .. ':tenants', unpack(tenants))) do
    local jobs, bytes, window = (text or ''):match('^(%d+) (%d+)( .*)$')
    if jobs then
      local gone = ended[tenants[i]]
      jobs, bytes = math.max(0, jobs - gone.jobs), math.max(0, bytes - gone.bytes)
      writes[#writes + 1] = tenants[i]
      writes[#writes + 1] = load_text(jobs, jobs == 0 and 0 or bytes) .. window
    end
  end
  if #writes > 0 then redis.call('HSET', prefix .. ':tenants', unpack(writes)) end
end

local function count_ended(ended, tenant, bytes)
  local sum = ended[tenant] or { jobs = 0, bytes = 0 }
  ended[tenant] = sum
  sum.jobs, sum.bytes = sum.jobs + 1, sum.bytes + bytes
end

-- Returns a tenant's suppressions (false: it has none), read once for many of its jobs.
local function read_suppressions(prefix, tenant)
  local key = prefix .. ':suppressed:' .. tenant
  if redis.call('EXISTS', key) == 0 then return false end
  local erased = redis.call('HMGET', key, ERASED_NAME, ERASED_JOB)
  return { key = key, erased_key = erased[1], has_erased_jobs = erased[2] }
end
-- Returns why a job on a topic ("" none) must not be sent, and behind a blank the topic if only that is suppressed ("":
-- it may be sent). The keyed hash is computed only if it can match. A name's reason is "" if it was removed, which no
-- erased name overrides.
local function suppressed_for(suppressions, job, recipient, topic)
  local key, erased_key, erased = suppressions.key, suppressions.erased_key, nil
  if suppressions.has_erased_jobs and redis.call('HEXISTS', key, ERASED_JOB .. job) == 1 then return ERASED end
  local function reason_for(about)
    local reason = redis.call('HGET', key, recipient .. about)
    if reason or not erased_key then return reason or '' end
    erased = erased or ERASED_NAME .. redis.sha1hex(erased_key .. recipient)
    return redis.call('HGET', key, erased .. about) or ''
  end
  local reason = reason_for('')
  if reason ~= '' or topic == '' then return reason end
  reason = reason_for('\t' .. topic)
  return reason == '' and '' or reason .. ' ' .. topic
end

-- Quarantines unreadable data, so that it does not stop the rest. Appends to `said` the values that each caller
-- returns: kind and location alternately.
local QUARANTINE_MAX, QUARANTINE_BYTES_MAX = 1000, 16384
local function quarantine(prefix, said, what, where, why, text)
  local line = string.format('%.0f', now_ms()) .. ' ' .. what .. ' ' .. where .. ': ' .. why
  redis.call('LPUSH', prefix .. ':quarantine', line .. '\n' .. tostring(text or ''):sub(1, QUARANTINE_BYTES_MAX))
  redis.call('LTRIM', prefix .. ':quarantine', 0, QUARANTINE_MAX - 1)
  said[#said + 1] = what
  said[#said + 1] = where
end

-- A queue entry: it leaves its tenant queue, and its tenant's load if its share can be read from its text.
local function quarantine_entry(prefix, said, tenant_queue, id, why, text)
  quarantine(prefix, said, 'entry', tenant_queue .. ' ' .. id, why, text)
  if redis.call('XDEL', queue_key(prefix, tenant_queue), id) == 0 then return end
  local ended = {}
  count_ended(ended, parse_tenant(tenant_queue), text and payload_bytes(text) or 0)
  unload(prefix, ended)
end

local function or_empty(json)
  if json == '' then return '{}' end
  return json
end

local function count_text(attempts, waits)
  if waits == 0 then return attempts end
  return attempts .. '+' .. string.format('%.0f', waits)
end

local function is_unfinished(status)
  return status == STATUS_PENDING or status == STATUS_HELD_PENDING or status == STATUS_RUNNING
end

-- Returns a record's tenant, channel and status; nil if it is unreadable.
local function record_state(record) return record:match('^(%S+) (%a)(%a)') end
-- Returns the tries in a record, with one more ("" none); a former release leaves them out. Most records have none, and
-- a search for one character finds that out sooner than a pattern.
local function record_tries(record)
  return record:find('{', 1, true) and record:match('^%S+ %S+ %S* ([^\n]*)') or ''
end
local function with_try(tries, try)
  if try == '' then return tries end
  tries = tries == '' and try or tries .. '\t' .. try
  local count = select(2, tries:gsub('\t', '')) + 1
  for _ = TRIES_MAX + 1, count do tries = tries:sub(tries:find('\t', 1, true) + 1) end
  return tries
end
-- Returns the life of a retried job ("" its first), and the event id before which it began.
local function record_life(record)
  return record:find('@', 1, true) and record:match('^%S+ %S+ [^@%s]*(@%d+:%d+)') or ''
end
local function life_began(life) return tonumber(life:match('%d+') or '0') end
local function end_of_head(place, tries)
  if tries ~= '' then return ' ' .. place .. ' ' .. tries end
  return place == '' and '' or ' ' .. place
end
-- Returns the time that a job waits for, which its record has instead of its entry's id.
local function record_due(record) return record:match('^%S+ %S+ ' .. LATER .. '(%d+)') end
local function with_place(record, place) return (record:gsub(' ' .. LATER .. '%d+', ' ' .. place, 1)) end
-- Makes a parked job due by the shard's time alone: no clock is checked for whether its scheduled time has come.
local function make_due(prefix, job, time)
  redis.call('ZADD', prefix .. ':later', 'XX', string.format('%.0f', time), job)
  local bucket, field = bucket_key(prefix, job), bucket_field(job)
  local record = redis.call('HGET', bucket, field)
  if record and record_due(record) then redis.call('HSET', bucket, field, with_place(record, LATER .. '0')) end
end
-- Returns the record with status `to` if it has status `from`, otherwise unchanged.
local function with_status(record, from, to) return (record:gsub('^(%S+ %a)' .. from, '%1' .. to, 1)) end

-- A gateway may follow links while it refuses the message, so readers' events do not show that the provider has it.
local function is_by_reader(type) return type == EVENT_OPENED or type == EVENT_CLICKED end
-- Whether a machine caused the event, according to a member of the result; quotes within a JSON text have a backslash
-- before them.
local function is_by_machine(type, result)
  return is_by_reader(type) and result:find('"machine":true', 1, true) ~= nil
end
-- The part of a result that distinguishes events of one type: a click's result without its program, or the further
-- recipient that the result begins with; '' for all others. However many reports arrive, a job has at most FURTHER_MAX
-- such recipients.
local FURTHER_MAX = 50
local function told_apart_by(type, result)
  if type == EVENT_CLICKED then return (result:gsub(',"machine":true', '', 1):gsub(',"by":"[^"]*"}$', '}')) end
  return result:match('^{"recipient":(".-")[,}]') or ''
end

-- Anyone who has a message can follow its links, as often as they like, and each click reads the whole record. A longer
-- record takes no more clicks: a few hundred links of usual length.
local CLICKED_BYTES_MAX = 32 * 1024
local function takes_no_click(record, type) return type == EVENT_CLICKED and #record > CLICKED_BYTES_MAX end

-- A job has at most one event per type, life and distinguishing part; but a person's event is added after a machine's.
local function has_event(record, type, result)
  if takes_no_click(record, type) then return true end
  local began, apart, further = life_began(record_life(record)), told_apart_by(type, result), 0
  local by_machine = is_by_machine(type, result)
  -- An empty result is left out of its line, and so is the space before it.
  for id, known in record:gmatch('\n' .. type .. '(%d+) ?([^\n]*)') do
    if tonumber(id) > began then
      local counts = by_machine or not is_by_machine(type, known)
      if counts and told_apart_by(type, known) == apart then return true end
      further = further + 1
    end
  end
  return type ~= EVENT_CLICKED and further > FURTHER_MAX
end

local KEPT_LINE = '\n' .. KEPT
-- Whether a waiting report shows that the provider has the message.
local function is_with_provider(record)
  return record:find(KEPT_LINE .. '[^' .. EVENT_OPENED .. EVENT_CLICKED .. ']') ~= nil
end
-- Returns a record's lines without the reports that wait for its end, and these reports.
local NO_REPORTS = {}
local function take_kept(lines)
  if not lines:find(KEPT_LINE, 1, true) then return lines, NO_REPORTS end
  local kept = {}
  lines = lines:gsub(KEPT_LINE .. '(%a) ?([^\n]*)', function(type, result)
    kept[#kept + 1] = { type = type, result = result }
    return ''
  end)
  return lines, kept
end
-- Whether such a report already waits for the job's end.
local function has_kept(record, type, result)
  if not record:find(KEPT_LINE .. type, 1, true) then return false end
  local apart, by_machine, further = told_apart_by(type, result), is_by_machine(type, result), 0
  for known in record:gmatch(KEPT_LINE .. type .. ' ?([^\n]*)') do
    local counts = by_machine or not is_by_machine(type, known)
    if counts and told_apart_by(type, known) == apart then return true end
    further = further + 1
  end
  return type ~= EVENT_CLICKED and further > FURTHER_MAX
end

-- Builds a record line with an event or, with KEPT before the type and no id, a report that waits.
local function record_line(type, id, result)
  if result == '' then return '\n' .. type .. id end
  return '\n' .. type .. id .. ' ' .. result
end

-- A line of the outbox is its job (begin_row), the event and, if the event ended the job, the job's final state, before
-- the "]".
local function begin_row(tenant, job, channel) return '["' .. tenant .. '","' .. job .. '","' .. channel .. '",' end
local function event_in_row(type, id, result) return id .. ',"' .. type .. '",' .. or_empty(result) end
-- Template and recipient as JSON texts, "" none; tries as in the record; `more` is a JSON object, "" none.
local function end_in_row(status, attempts, result, template, recipient, tries, more)
  local row = ',"' .. status .. '",' .. attempts .. ',' .. or_empty(result)
  if recipient == '' then recipient = '""' end
  if more == '' and tries == '' and recipient == '""' then return template == '' and row or row .. ',' .. template end
  row = row .. ',' .. (template == '' and 'null' or template) .. ',' .. recipient
  if more ~= '' then return row .. ',[' .. tries:gsub('\t', ',') .. '],' .. more end
  return tries == '' and row or row .. ',[' .. tries:gsub('\t', ',') .. ']'
end

-- Returns the record of a job that has ended, with the reports that waited for its end as events behind the others;
-- `to` has the event clock, the rows of the outbox and the beginning of the job's rows.
local function with_kept(record, kept, to)
  for _, report in ipairs(kept) do
    if not has_event(record, report.type, report.result) then
      local id = to.clock.next()
      record = record .. record_line(report.type, id, report.result)
      to.rows[#to.rows + 1] = to.row .. event_in_row(report.type, id, report.result) .. ']'
    end
  end
  return record
end

-- The beginning of a retried job's life, a failed job's entry ("" not kept), and the job's tags ("" none).
local function more_in_row(life, kept, tags)
  if life == '' and kept == '' and tags == '' then return '' end
  local more = {}
  if life ~= '' then more[#more + 1] = '"began":' .. life:match('%d+') end
  if kept ~= '' then more[#more + 1] = '"kept":' .. json_text(kept) end
  if tags ~= '' then more[#more + 1] = '"tags":"' .. tags .. '"' end
  return '{' .. table.concat(more, ',') .. '}'
end
