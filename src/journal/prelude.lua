-- Shared by all scripts. KEYS[n] is a shard's prefix P; every key of the shard begins with it:
--   P:box:<box>            stream  one entry a job, field p = "<job id> <channel><attempts> <recipient>\n<payload>";
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
--   P:suppressed:<tenant>  hash    recipient -> reason
--   P:rate:<tenant>        hash    b = first slice, t = total, <slice> = count
--   P:idem:<tenant>:<key>  string  "<job id> <fingerprint>"
--
-- A job record is text. Its first line: "<tenant> <channel><status><attempts> <box entry>". Then a line an event:
-- "<type><event id> <result>" (the result is left out when it is {}), and at most one line "=<result>" of the job.
-- Channels: e-mail e, whatsapp w, wallet p. Status: pending p, pending although pulled q, running r, success s,
-- failed f, suppressed x. Events: see codec.ts.
--
-- Bucket rule: field n = jobs of the bucket that are not final + its rows in the outbox. A bucket expires only at n = 0.

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

-- Keeps the bucket while `count` more of its things are unfinished or unrecorded.
local function keep_bucket(bucket, count)
  if redis.call('HINCRBY', bucket, 'n', count) == count then redis.call('PERSIST', bucket) end
end

local function or_empty(json)
  if json == '' then return '{}' end
  return json
end
