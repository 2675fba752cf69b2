-- Shared by all scripts. KEYS[n] is a shard's prefix P; every key of the shard begins with it:
--   P:box:<box>            stream  one entry per job, field p = "<job id> <channel><count> <recipient>\n<payload>";
--                                  a q after the count: pending until its content was screened; after the recipient
--                                  a tab and the template as JSON text ("" none), and a tab, the SHA-256 and the bytes
--                                  of a payload that is stored elsewhere, each only if there is one;
--                                  ids "<n>-0" with n from the counter in P:tenants;
--                                  a box is a tenant queue's name, "<tenant>/<channel>": each channel of a
--                                  tenant has its own, so that none waits for another
--   P:ready                set     tenant queues with entries that nobody has pulled
--   P:held                 set     tenant queues with entries that the owner knows of
--   P:cursor               hash    box -> last entry that was pulled
--   P:later                zset    job id -> when its retry is due (shard time, ms)
--   P:parked               hash    job id -> "<box> <box entry>" of a job that waits in P:later;
--                                  "<box>!<token> <box entry>" of one that was lent under the lease with that token
--   P:loans                hash    job id -> how long (ms) it was lent for, while it waits in P:later
--   P:skew                 string  "<ms that the shard's time is ahead of Redis' clock> <the shard's time at the last pull>"
--   P:jobs:<bucket>        hash    job records (below)
--   P:tenants              hash    tenant -> "<jobs> <bytes of their payloads>" that are unfinished, and of its rate
--                                  window " <first slice> <total> <slice> <requests in that slice>";
--                                  "" -> the number of the last queue entry
--   P:outbox               stream  one entry per batch, field r = its rows, one JSON array per line; field c = their number
--   P:mark                 string  "<first> <last>" entry of the outbox piece that is being recorded; if it is written
--                                  together with others: "<first> <last> <group>\n<list>", the list has one line per piece,
--                                  "<prefix> <first> <last>", the group is derived from it
--   P:clock                string  last event id
--   P:recorded             string  last event id that is in the event store
--   P:leaving              list    "<shard time, ms> <job id> <job id> ..." of finished jobs, and when their end was recorded (by
--                                  the shard's time at the last pull)
--   P:lease:<role>         hash    owner, token, renewals; no clock ends it
--   P:epoch                string  counter behind the tokens
--   P:suppressed:<tenant>  hash    recipient -> reason; "" if it was removed before the index was complete
--   P:suppressions-loaded  string  exists once P:suppressed:* hold all suppressions of the registry
--   P:allowance:<box>:<day> string units taken from the tenant queue's allowance for a UTC day (days since 1970)
--   P:rate:<tenant>        hash    <earlier slice of the tenant's rate window> -> requests
--   P:repeated:<job>       string  exists for a while after a repeat of the accept call that starts with this job
--   P:idem:<tenant>:<key>  string  "<job id> <fingerprint>"
--   P:quarantine           list    "<unix ms> <what> <where>: <why>\n<text>" of unreadable data, the newest first
-- Outside the shards are wb:{meta} (format.ts), wb:{members}:<role>:beats (members.lua) and wb:{ref<tag>}:<hour>:<bucket>
-- (references.ts).
--
-- A job record is text. Its first line: "<tenant> <channel><status><count> <entry id>". Then one line per event:
-- "<type><event id> <result>" (the result is left out when it is {}), and at most one line "=<result>" of the job.
-- Until the job ends, the record also holds reports that wait for its end, at most one per type (clicked: per type and
-- result): "!<type> <result>".
-- A count is "<attempts>", or "<attempts>+<waits>" after uncounted waits, and in an entry that was lent. The sum of both is
-- the number of the settlement, which identifies its repeats.
-- Channels: e-mail e, whatsapp w, wallet p. Status: pending p, pending although pulled q, running r, success s,
-- failed f, suppressed x. Events: see codec.ts.
--
-- Shard time is Redis' clock plus P:skew, which pull.lua keeps in step with the owner's monotonic clock: if Redis' clock is
-- set forward or back, due times stay as they were.

-- A script uses a single time from its beginning to its end.
local script_ms
local function now_ms()
  if not script_ms then
    local time = redis.call('TIME')
    script_ms = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  return script_ms
end

-- The shard's time now, and the time agreed on by the last pull, which no later step of Redis' clock has moved.
local function shard_clock(prefix)
  local skew, agreed = (redis.call('GET', prefix .. ':skew') or ''):match('^(-?%d+) ?(%d*)$')
  local time = now_ms() + tonumber(skew or '0')
  return time, tonumber(agreed or '') or time
end
-- The time by which finished jobs leave.
local function agreed_ms(prefix) return (select(2, shard_clock(prefix))) end

-- 1735689600000 and 4096: the event epoch and the number of ids per millisecond (domain/event.ts).
local function event_clock(prefix)
  local last = tonumber(redis.call('GET', prefix .. ':clock') or '0')
  local first = (now_ms() - 1735689600000) * 4096
  return {
    next = function()
      last = math.max(last + 1, first)
      return string.format('%.0f', last)
    end,
    save = function() redis.call('SET', prefix .. ':clock', string.format('%.0f', last)) end,
  }
end

local function bucket_key(prefix, job) return prefix .. ':jobs:' .. job:sub(1, 8) .. job:sub(10, 12) end
local function bucket_field(job) return job:sub(13) end

local function holds_lease(prefix, role, token)
  return redis.call('HGET', prefix .. ':lease:' .. role, 'token') == token
end

-- The number of a queue entry: rises for as long as the shard exists, even if Redis forgot its last writes. 256 per
-- millisecond of the event epoch is more than any shard takes, and exceeds any id that was a time.
local function next_entry(last)
  return math.max(last + 1, (now_ms() - 1735689600000) * 256)
end
local function entry_number(number) return string.format('%.0f', number) end
local function entry_id(number) return string.format('%.0f-0', number) end

-- A job's share of its tenant's load: the bytes of its payload, wherever that is stored.
local function payload_bytes(entry)
  local head = entry:find('\n', 1, true) or #entry
  return #entry > head and #entry - head or tonumber(entry:match('\t%x+ (%d+)\n$') or '0')
end

-- A tenant's state: unfinished jobs and their bytes, and its rate window. Unreadable state counts as nothing.
local function tenant_state(text)
  local jobs, bytes, first, total, slice, here = (text or ''):match('^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  if not jobs then return 0, 0, 0, 0, 0, 0 end
  return tonumber(jobs), tonumber(bytes), tonumber(first), tonumber(total), tonumber(slice), tonumber(here)
end
local function load_text(jobs, bytes) return string.format('%.0f %.0f', jobs, bytes) end

-- Takes ended jobs off their tenants' loads: tenant -> { jobs, bytes }. A load never falls below 0, even for jobs that
-- were never counted.
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

-- Quarantines unreadable data, so that it stops nothing else. Appends to `said` what each caller returns: kind and
-- place alternately.
local function quarantine(prefix, said, what, where, why, text)
  local line = string.format('%.0f', now_ms()) .. ' ' .. what .. ' ' .. where .. ': ' .. why
  redis.call('LPUSH', prefix .. ':quarantine', line .. '\n' .. tostring(text or ''):sub(1, 16384))
  redis.call('LTRIM', prefix .. ':quarantine', 0, 999)
  said[#said + 1] = what
  said[#said + 1] = where
end

-- A queue entry: it leaves its tenant queue, and its tenant's load as far as its text tells its share.
local function quarantine_entry(prefix, said, box, id, why, text)
  quarantine(prefix, said, 'entry', box .. ' ' .. id, why, text)
  if redis.call('XDEL', prefix .. ':box:' .. box, id) == 0 then return end
  local ended = {}
  count_ended(ended, box:match('^[^/]+'), text and payload_bytes(text) or 0)
  unload(prefix, ended)
end

-- A job id has 36 characters, the ninth of them a dash.
local function is_entry(text)
  return type(text) == 'string' and text:byte(9) == 45 and text:find('^ %l%d+%+?%d*q? [^\n]*\n', 37) ~= nil
end
local function is_box(text) return type(text) == 'string' and text:find('^[^/]+/%l$') ~= nil end

local function or_empty(json)
  if json == '' then return '{}' end
  return json
end

local function count_text(attempts, waits)
  if waits == 0 then return attempts end
  return attempts .. '+' .. waits
end

local function is_unfinished(status) return status == 'p' or status == 'q' or status == 'r' end

-- At most one event per type; clicked: one per type and result.
local function has_event(record, type, result)
  if type ~= 'c' then return record:find('\n' .. type .. '%d') ~= nil end
  -- An empty result is left out of its line, and so is the space before it.
  for known in record:gmatch('\nc%d+ ?([^\n]*)') do
    if known == result then return true end
  end
  return false
end

-- Whether such a report already waits for the job's end.
local function has_kept(record, type, result)
  if type ~= 'c' then return record:find('\n!' .. type, 1, true) ~= nil end
  for known in record:gmatch('\n!c ?([^\n]*)') do
    if known == result then return true end
  end
  return false
end

-- A record line with an event or, with "!" before the type and no id, a report that waits.
local function record_line(type, id, result)
  if result == '' then return '\n' .. type .. id end
  return '\n' .. type .. id .. ' ' .. result
end

-- A line of the outbox is its job (row_of), the event and, if the event ended the job, the job's final state, before
-- the "]".
local function row_of(tenant, job, channel) return '["' .. tenant .. '","' .. job .. '","' .. channel .. '",' end
local function event_in_row(type, id, result) return id .. ',"' .. type .. '",' .. or_empty(result) end
-- The template as JSON text, "" none.
local function end_in_row(status, attempts, result, template)
  local row = ',"' .. status .. '",' .. attempts .. ',' .. or_empty(result)
  if template == '' then return row end
  return row .. ',' .. template
end
