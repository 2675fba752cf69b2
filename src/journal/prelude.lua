-- Shared by all scripts. KEYS[n] is a shard's prefix P; every key of the shard begins with it:
--   P:box:<box>            stream  one entry a job, field p = "<job id> <channel><count> <recipient>\n<payload>";
--                                  a q behind the count: pending until its content was looked at;
--                                  behind the recipient, where there is one, a tab and the template as JSON text;
--                                  a box is "<tenant>/<channel>": a tenant's channels do not wait for each other
--   P:ready                set     boxes with entries that nobody has pulled
--   P:held                 set     boxes with entries that the owner knows of
--   P:cursor               hash    box -> last entry that was pulled
--   P:later                zset    job id -> when its retry is due (unix ms)
--   P:parked               hash    job id -> "<box> <box entry>" of a job that waits in P:later
--   P:jobs:<bucket>        hash    job records (below); field n counts what keeps the bucket from expiring
--   P:failed:<job id>      string  box entry of a failed job, for the operator's retry
--   P:outbox               stream  one entry a batch, field r = its rows, one JSON array a line; field c = their number
--   P:mark                 string  "<first> <last>" entry of the outbox batch that is being recorded
--   P:clock                string  last event id
--   P:lease:<role>         hash    owner, token
--   P:epoch                string  counter behind the tokens
--   P:suppressed:<tenant>  hash    recipient -> reason; "" for one that was removed before the index was complete
--   P:suppressions-loaded  string  there when P:suppressed:* hold all that the registry does
--   P:allowance:<box>:<day> string deliveries that were taken of what the box may send on a UTC day (days since 1970)
--   P:rate                 hash    tenant -> "<first slice> <total> <slice> <requests in that slice>" of its rate window
--   P:rate:<tenant>        hash    <earlier slice of the window> -> requests
--   P:closing              list    buckets that got rows recorded, until they are old enough to expire
--   P:repeated:<job id>    string  there was a repeat of the accept call whose first job this is
--   P:idem:<tenant>:<key>  string  "<job id> <fingerprint>"
-- Beside the shards are wb:{members}:<role> (members.lua) and wb:{ref<tag>}:<hour>:<bucket> (references.ts).
--
-- A job record is text. Its first line: "<tenant> <channel><status><count> <box entry>". Then a line an event:
-- "<type><event id> <result>" (the result is left out when it is {}), and at most one line "=<result>" of the job.
-- While the job has not ended also, for each type at most once, a report that waits for its end: "!<type> <result>".
-- A count is "<attempts>", or "<attempts>+<waits>" where there were waits that cost no attempt. The sum of both is the
-- number of the settlement, by which its repeats are known.
-- Channels: e-mail e, whatsapp w, wallet p. Status: pending p, pending although pulled q, running r, success s,
-- failed f, suppressed x. Events: see codec.ts.
--
-- Bucket rule: field r = its rows that are in the ledger, less its events beyond the one that ended a job. A bucket is
-- complete when r is the number of its jobs: all are final and all is recorded. Only a complete bucket that is too old
-- to get new jobs expires (record.lua), so that accepting a job costs it nothing.

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- 1735689600000 and 4096: the event epoch and the ids of a millisecond (core/event.ts).
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

-- When the first jobs of the bucket were made (unix ms): its name is their time in steps of 16 ms.
local function bucket_ms(job) return tonumber(job:sub(1, 8) .. job:sub(10, 12), 16) * 16 end

local function or_empty(json)
  if json == '' then return '{}' end
  return json
end

local function count_text(attempts, waits)
  if waits == 0 then return attempts end
  return attempts .. '+' .. waits
end

local function is_unfinished(status) return status == 'p' or status == 'q' or status == 'r' end

-- At most one event a type; clicked: one a type and result.
local function has_event(record, type, result)
  if type ~= 'c' then return record:find('\n' .. type .. '%d') ~= nil end
  -- An empty result is left out of its line, and the space before it.
  for known in record:gmatch('\nc%d+ ?([^\n]*)') do
    if known == result then return true end
  end
  return false
end

-- The line of a record that holds an event or, with "!" before the type and no id, a report that waits.
local function record_line(type, id, result)
  if result == '' then return '\n' .. type .. id end
  return '\n' .. type .. id .. ' ' .. result
end

-- A line of the outbox is its job (row_of), the event, and where that ended the job what it ended as, before the "]".
local function row_of(tenant, job, channel) return '["' .. tenant .. '","' .. job .. '","' .. channel .. '",' end
local function event_in_row(type, id, result) return id .. ',"' .. type .. '",' .. or_empty(result) end
-- The template as JSON text, "" none.
local function end_in_row(status, attempts, result, template)
  local row = ',"' .. status .. '",' .. attempts .. ',' .. or_empty(result)
  if template == '' then return row end
  return row .. ',' .. template
end
