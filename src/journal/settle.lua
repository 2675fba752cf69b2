-- Writes down what became of jobs: a final status with its event, a retry, or that a screened job is running now.
-- KEYS: the shard's prefix.
-- ARGV: lease token, ms that a failed job's payload is kept, most bytes that are kept of one, then twelve values a job:
--       tenant, job id, box entry id, channel, attempts and waits before this one, status ("r" is a retry, "q" one of a
--       job that nobody could screen yet, "g" says that it is screened and running), "w" where it costs no attempt and
--       "u" where the job is given up without a clear answer (else ""), event type, event result (a retry: ms until it
--       is due), job result, template as JSON text ("" none).
-- Returns false when the lease is not held, otherwise how many settlements were new. Safe to repeat: a job whose record
-- counts this settlement already is left alone.
-- Reports that waited for the job's end (observe.lua) become events behind the one that ends it. A job that has one is
-- not tried again and not given up: its provider has it, and so it ends with success.

local prefix, token, failed_ttl, failed_bytes_max = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
if not holds_lease(prefix, 'dispatcher', token) then return false end

-- Records are read and written a bucket at a time.
local buckets = {}
for at = 4, #ARGV, 12 do
  local key = bucket_key(prefix, ARGV[at + 1])
  local bucket = buckets[key] or { fields = {}, records = {}, writes = {}, more_events = 0 }
  buckets[key] = bucket
  bucket.fields[#bucket.fields + 1] = bucket_field(ARGV[at + 1])
end
for key, bucket in pairs(buckets) do
  for i, record in ipairs(redis.call('HMGET', key, unpack(bucket.fields))) do
    bucket.records[bucket.fields[i]] = record
  end
end

local clock, rows, done, boxes, settled = event_clock(prefix), {}, {}, {}, 0
local now = now_ms()

local NONE = {}
local function take_kept(lines)
  if lines == '' or not lines:find('\n!', 1, true) then return lines, NONE end
  local kept = {}
  lines = lines:gsub('\n!(%a) ?([^\n]*)', function(type, result)
    kept[#kept + 1] = { type = type, result = result }
    return ''
  end)
  return lines, kept
end

for at = 4, #ARGV, 12 do
  local tenant, job, entry, channel = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local attempts, waits, status, how = tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5]), ARGV[at + 6], ARGV[at + 7]
  local type, detail, result, template = ARGV[at + 8], ARGV[at + 9], ARGV[at + 10], ARGV[at + 11]
  local bucket, field = buckets[bucket_key(prefix, job)], bucket_field(job)
  local record = bucket.records[field] or (tenant .. ' ' .. channel .. 'p0')
  local head, rest = record:match('^([^\n]*)(.*)$')
  local current, counted, waited = head:match('^%S+ %a(%a)(%d+)%+?(%d*)')
  local box = tenant .. '/' .. channel

  local is_new = is_unfinished(current) and tonumber(counted) + (tonumber(waited) or 0) <= attempts + waits
  local is_start, is_retry = status == 'g', status == 'r' or status == 'q'
  if how == 'w' then waits = waits + 1 else attempts = attempts + 1 end
  -- What has been running does not look pending again.
  if status == 'q' and current == 'r' then status = 'r' end
  if is_start and is_new and current == 'q' then
    record = head:gsub('^(%S+ %a)q', '%1r', 1) .. rest
    bucket.records[field] = record
    bucket.writes[field] = record
  end

  local value
  if is_new and (is_retry or status == 'f') then
    local found = redis.call('XRANGE', prefix .. ':box:' .. box, entry, entry)[1]
    value = found and found[2][2]:gsub('^(%S+ %a)%d+%+?%d*', '%1' .. count_text(attempts, waits), 1)
  end

  -- Where Redis forgot its last writes, the entry may be gone and the job wait elsewhere, as it did before this attempt:
  -- a retry then counts nothing, or the attempt that follows would be taken for one that is counted already.
  if is_new and not is_start and (value or not is_retry) then
    settled = settled + 1
    local lines, kept = take_kept(rest)
    if #kept > 0 and (is_retry or how == 'u') then
      is_retry, status, type, detail, result = false, 's', 's', '', ''
      attempts = math.max(1, attempts)
    end
    record = tenant .. ' ' .. channel .. status .. count_text(attempts, waits) .. lines
    if is_retry then
      redis.call('HSET', prefix .. ':parked', job, box .. ' ' .. value)
      redis.call('ZADD', prefix .. ':later', now + tonumber(detail), job)
    else
      if status == 'f' and value and #value <= failed_bytes_max then
        redis.call('SET', prefix .. ':failed:' .. job, value, 'PX', failed_ttl)
      end
      local row, id = row_of(tenant, job, channel), clock.next()
      record = record .. record_line(type, id, detail)
      rows[#rows + 1] = row .. event_in_row(type, id, detail) .. end_in_row(status, attempts, result, template) .. ']'
      for _, report in ipairs(kept) do
        if not has_event(record, report.type, report.result) then
          id = clock.next()
          record = record .. record_line(report.type, id, report.result)
          rows[#rows + 1] = row .. event_in_row(report.type, id, report.result) .. ']'
          bucket.more_events = bucket.more_events + 1
        end
      end
      if result ~= '' then record = record .. '\n=' .. result end
    end
    bucket.records[field] = record
    bucket.writes[field] = record
  end
  -- An empty box is deleted, and its next entry can get an id that was used before: what comes again may only remove an
  -- entry that is still its own.
  local is_own = is_new
  if is_start then
    is_own = false
  elseif not is_new then
    local found = redis.call('XRANGE', prefix .. ':box:' .. box, entry, entry)[1]
    is_own = found and found[2][2]:sub(1, 36) == job
  end
  local entries = done[box]
  if not entries then
    entries = {}
    done[box] = entries
    boxes[#boxes + 1] = box
  end
  if is_own then entries[#entries + 1] = entry end
end

for key, bucket in pairs(buckets) do
  local fields = {}
  for field, record in pairs(bucket.writes) do
    fields[#fields + 1] = field
    fields[#fields + 1] = record
  end
  if #fields > 0 then redis.call('HSET', key, unpack(fields)) end
  if bucket.more_events > 0 then redis.call('HINCRBY', key, 'r', -bucket.more_events) end
end
if #rows > 0 then
  redis.call('XADD', prefix .. ':outbox', '*', 'c', #rows, 'r', table.concat(rows, '\n'))
  clock.save()
end
for _, box in ipairs(boxes) do
  local key = prefix .. ':box:' .. box
  if #done[box] > 0 then redis.call('XDEL', key, unpack(done[box])) end
  if redis.call('XLEN', key) == 0 then
    redis.call('DEL', key)
    redis.call('HDEL', prefix .. ':cursor', box)
    redis.call('SREM', prefix .. ':held', box)
  end
end
return settled
