-- Hands the recorder of a shard the next batch of the outbox, whose end is fixed before it is handed out.
-- KEYS: the shard's prefix.
-- ARGV: lease token, most rows, most outbox entries, most bytes, ms that a finished job is kept, how many jobs may leave at
--       least, first and last entry of the batch that is in the event store ("" none), its last event, and the jobs that
--       ended in it, some to a text ("<job id> <job id> ...").
-- Returns false when the lease is not held. Otherwise first and last entry ("" both: the outbox is empty), whether there is
--       more behind them, the rows, a text an entry, and what was put into quarantine.

local prefix, token = KEYS[1], ARGV[1]
local rows_max, entries_max, bytes_max = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
if not holds_lease(prefix, 'recorder', token) then return false end

local outbox, mark_key, leaving = prefix .. ':outbox', prefix .. ':mark', prefix .. ':leaving'
local mark, said = redis.call('GET', mark_key), {}
local time = shard_ms(prefix)

local function note_leaving(texts)
  for i, jobs in ipairs(texts) do texts[i] = string.format('%.0f', time) .. ' ' .. jobs end
  if #texts > 0 then redis.call('RPUSH', leaving, unpack(texts)) end
end

-- A repeated call finds another mark, or none, and removes nothing.
local ended = 0
if mark and mark == ARGV[7] .. ' ' .. ARGV[8] then
  local ms, seq = ARGV[8]:match('^(%d+)-(%d+)$')
  redis.call('XTRIM', outbox, 'MINID', '=', ms .. '-' .. string.format('%.0f', seq + 1))
  redis.call('DEL', mark_key)
  mark = false
  if tonumber(ARGV[9]) > tonumber(redis.call('GET', prefix .. ':recorded') or '0') then
    redis.call('SET', prefix .. ':recorded', ARGV[9])
  end
  local texts = { unpack(ARGV, 10) }
  for _, jobs in ipairs(texts) do ended = ended + math.ceil(#jobs / 37) end
  note_leaving(texts)
end

local function is_complete(record, recorded)
  local status = record:match('^%S+ %a(%a)')
  if not status or is_unfinished(status) then return false end
  for id in record:gmatch('\n%a(%d+)') do
    if tonumber(id) > recorded then return false end
  end
  return true
end

-- Removes those of the jobs that are complete, a bucket at a time, and adds the others to `staying`.
local function remove_complete(jobs, recorded, staying)
  local buckets, stays = {}, {}
  for job in jobs:gmatch('%S+') do
    local key = bucket_key(prefix, job)
    local bucket = buckets[key] or { jobs = {}, fields = {} }
    buckets[key] = bucket
    bucket.jobs[#bucket.jobs + 1], bucket.fields[#bucket.fields + 1] = job, bucket_field(job)
  end
  for key, bucket in pairs(buckets) do
    local gone = {}
    for i, record in ipairs(redis.call('HMGET', key, unpack(bucket.fields))) do
      if record and is_complete(record, recorded) then
        gone[#gone + 1] = bucket.fields[i]
      else
        stays[bucket.jobs[i]] = record ~= false
      end
    end
    if #gone > 0 then redis.call('HDEL', key, unpack(gone)) end
  end
  for job in jobs:gmatch('%S+') do
    if stays[job] then staying[#staying + 1] = job end
  end
end

-- Lets finished jobs leave, the longest kept first: more than came, so that they never add up. What has an event that is
-- not in the event store yet stays for as long again. A clock that was far off keeps nobody here.
local function let_leave(kept_ms, jobs_max)
  local recorded = tonumber(redis.call('GET', prefix .. ':recorded') or '0')
  local seen, staying, is_young = 0, {}, false
  while seen < jobs_max and not is_young do
    local texts, taken = redis.call('LRANGE', leaving, 0, 63), 0
    for _, text in ipairs(texts) do
      local since, jobs = text:match('^(%d+) (.*)$')
      is_young = since ~= nil and math.abs(time - tonumber(since)) < kept_ms
      if is_young or seen >= jobs_max then break end
      taken, seen = taken + 1, seen + math.max(1, math.ceil(#(jobs or '') / 37))
      remove_complete(jobs or '', recorded, staying)
    end
    if taken > 0 then redis.call('LTRIM', leaving, taken, -1) end
    if #texts < 64 then break end
  end
  return staying
end
local staying, texts_staying = let_leave(tonumber(ARGV[5]), math.max(tonumber(ARGV[6]), 2 * ended)), {}
for i = 1, #staying, 64 do
  texts_staying[#texts_staying + 1] = table.concat(staying, ' ', i, math.min(i + 63, #staying))
end
note_leaving(texts_staying)

local entries
if mark then
  local first, last = mark:match('^(%S+) (%S+)$')
  entries = redis.call('XRANGE', outbox, first, last)
else
  -- In growing steps, so that rows with large results are not read far beyond the bytes that are asked for.
  local from, step, rows, bytes, full = '-', 4, 0, 0, false
  entries = {}
  while not full and #entries < entries_max do
    step = math.min(2 * step, entries_max - #entries)
    local read = redis.call('XRANGE', outbox, from, '+', 'COUNT', step)
    for _, entry in ipairs(read) do
      from = '(' .. entry[1]
      local count, text = tonumber(entry[2][2]), entry[2][4]
      if count and text then
        rows, bytes = rows + count, bytes + #text
        full = #entries > 0 and (rows > rows_max or bytes > bytes_max)
        if full then break end
        entries[#entries + 1] = entry
      else
        quarantine(prefix, said, 'outbox', entry[1], 'no rows', table.concat(entry[2], ' '))
        redis.call('XDEL', outbox, entry[1])
      end
    end
    if #read < step then break end
  end
  if #entries > 0 then redis.call('SET', mark_key, entries[1][1] .. ' ' .. entries[#entries][1]) end
end
if #entries == 0 and mark then redis.call('DEL', mark_key) end
if #entries == 0 then return { '', '', 0, {}, said } end

local texts = {}
for i, entry in ipairs(entries) do texts[i] = entry[2][4] end
local more = redis.call('XLEN', outbox) > #entries
return { entries[1][1], entries[#entries][1], more and 1 or 0, texts, said }
