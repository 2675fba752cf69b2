-- Hands recorders the next pieces of their shards' outboxes, and freezes each piece before it hands it out.
-- KEYS: the prefixes of the shards; several only if all shards are in one Redis.
-- ARGV: most rows, most outbox entries, most bytes of the whole call, ms that a finished job is kept, how many jobs may
--       leave a shard at least, most pieces per group; then for each shard: lease token, 1 if its next piece is
--       requested, the group that the event store refuses ("" none), first and last entry and group of the piece that
--       the event store has ("" none), its last event, the number of texts that follow, and in these the jobs that
--       ended in the piece ("<job id> <job id> ...").
-- Returns the prefixes whose lease is not held, batches, the prefixes that hold more, and what was quarantined: prefix,
--       kind and place in turn. A batch is its group ("" for a piece alone), 0 frozen by this call, 1 by an earlier
--       one, 2 known to be in the event store, and its pieces, each with a prefix, first and last entry, and the rows,
--       one text per entry.
--
-- A group is written to the marks of all its pieces at one instant, and a mark with a group is removed only when its
-- piece is taken off the outbox, or together with all the others (`disband`). If one of a group's marks is gone, the
-- event store therefore has the group; if all marks are there, all its rows are still here.

local rows_left, entries_left, bytes_left = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local kept_ms, leave_min, pieces_max = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local has_read = false

local function mark_text(first, last, group, list)
  if group == '' then return first .. ' ' .. last end
  return first .. ' ' .. last .. ' ' .. group .. '\n' .. list
end

local function mark_of(prefix)
  local text = redis.call('GET', prefix .. ':mark')
  if not text then return nil end
  local first, last, rest = text:match('^(%S+) (%S+)(.*)$')
  local group, list = rest:match('^ (%S+)\n(.*)$')
  return { first = first, last = last, group = group or '', list = list or '' }
end

local function note_leaving(prefix, time, texts)
  for i, jobs in ipairs(texts) do texts[i] = string.format('%.0f', time) .. ' ' .. jobs end
  if #texts > 0 then redis.call('RPUSH', prefix .. ':leaving', unpack(texts)) end
end

-- Takes the marked piece off the outbox. Returns how many jobs ended in it.
local function remove(prefix, mark, last_event, texts)
  local ms, seq = mark.last:match('^(%d+)-(%d+)$')
  redis.call('XTRIM', prefix .. ':outbox', 'MINID', '=', ms .. '-' .. string.format('%.0f', seq + 1))
  redis.call('DEL', prefix .. ':mark')
  if tonumber(last_event) > tonumber(redis.call('GET', prefix .. ':recorded') or '0') then
    redis.call('SET', prefix .. ':recorded', last_event)
  end
  local ended = 0
  for _, jobs in ipairs(texts) do ended = ended + math.ceil(#jobs / 37) end
  note_leaving(prefix, agreed_ms(prefix), texts)
  return ended
end

local function is_complete(record, recorded)
  local status = record:match('^%S+ %a(%a)')
  if not status or is_unfinished(status) then return false end
  for id in record:gmatch('\n%a(%d+)') do
    if tonumber(id) > recorded then return false end
  end
  return true
end

-- Removes the complete jobs, one bucket at a time, and adds the others to `staying`.
local function remove_complete(prefix, jobs, recorded, staying)
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

-- Removes finished jobs, the longest kept first: more than arrive, so that they never pile up. A job with an event that
-- is not yet in the event store stays for another period. A clock that was far off keeps no job here.
local function let_leave(prefix, jobs_max)
  local leaving, time = prefix .. ':leaving', nil
  local recorded = tonumber(redis.call('GET', prefix .. ':recorded') or '0')
  local seen, staying, is_young = 0, {}, false
  while seen < jobs_max and not is_young do
    -- The first one alone, which is mostly too young.
    local texts, taken = redis.call('LRANGE', leaving, 0, seen == 0 and 0 or 63), 0
    if #texts == 0 then break end
    time = time or agreed_ms(prefix)
    for _, text in ipairs(texts) do
      local since, jobs = text:match('^(%d+) (.*)$')
      is_young = since ~= nil and math.abs(time - tonumber(since)) < kept_ms
      if is_young or seen >= jobs_max then break end
      taken, seen = taken + 1, seen + math.max(1, math.ceil(#(jobs or '') / 37))
      remove_complete(prefix, jobs or '', recorded, staying)
    end
    if taken > 0 then redis.call('LTRIM', leaving, taken, -1) end
  end
  local texts = {}
  for i = 1, #staying, 64 do
    texts[#texts + 1] = table.concat(staying, ' ', i, math.min(i + 63, #staying))
  end
  note_leaving(prefix, time, texts)
end

-- Whether all pieces of the group carry its mark.
local function is_whole(mark)
  for prefix, first, last in mark.list:gmatch('(%S+) (%S+) (%S+)') do
    if redis.call('GET', prefix .. ':mark') ~= mark_text(first, last, mark.group, mark.list) then return false end
  end
  return true
end

local function disband(mark)
  if not is_whole(mark) then return end
  for prefix, first, last in mark.list:gmatch('(%S+) (%S+) (%S+)') do
    redis.call('SET', prefix .. ':mark', mark_text(first, last, '', ''))
  end
end

local fenced, batches, more, said = {}, {}, {}, {}

-- Returns a marked piece again.
local sizes = {}
local function read(prefix, first, last)
  local texts = {}
  for i, entry in ipairs(redis.call('XRANGE', prefix .. ':outbox', first, last)) do
    texts[i] = entry[2][4] or ''
    rows_left, bytes_left = rows_left - tonumber(entry[2][2] or '0'), bytes_left - #texts[i]
  end
  has_read, sizes[prefix] = true, #texts
  entries_left = entries_left - #texts
  return { prefix, first, last, texts }
end

-- The next piece of an outbox, or nothing. Reads in growing steps, so that rows with large results are not read far
-- beyond the requested bytes.
local function take(prefix)
  local outbox, from, step, is_full = prefix .. ':outbox', '-', 4, false
  local first, last, texts = nil, nil, {}
  while not is_full and entries_left > 0 do
    step = math.min(2 * step, entries_left)
    local entries = redis.call('XRANGE', outbox, from, '+', 'COUNT', step)
    for _, entry in ipairs(entries) do
      from = '(' .. entry[1]
      local count, text = tonumber(entry[2][2]), entry[2][4]
      if count and text then
        is_full = has_read and (count > rows_left or #text > bytes_left)
        if is_full then break end
        rows_left, bytes_left, entries_left = rows_left - count, bytes_left - #text, entries_left - 1
        first, last, has_read = first or entry[1], entry[1], true
        texts[#texts + 1] = text
      else
        local at = #said
        quarantine(prefix, said, 'outbox', entry[1], 'no rows', table.concat(entry[2], ' '))
        table.insert(said, at + 1, prefix)
        redis.call('XDEL', outbox, entry[1])
      end
    end
    if #entries < step then break end
  end
  if #texts < redis.call('XLEN', outbox) then more[#more + 1] = prefix end
  return first and { prefix, first, last, texts }
end

-- Shards whose next piece is still to be frozen, and shards with a marked piece.
local free, found, at = {}, {}, 7
for _, prefix in ipairs(KEYS) do
  local token, takes, refused, first, last, group, last_event, count = unpack(ARGV, at, at + 7)
  local texts = { unpack(ARGV, at + 8, at + 7 + tonumber(count)) }
  at = at + 8 + tonumber(count)
  if not holds_lease(prefix, 'recorder', token) then
    fenced[#fenced + 1] = prefix
  else
    local mark, ended = mark_of(prefix), 0
    -- A repeated call finds another mark, or none, and removes nothing.
    if mark and mark.first == first and mark.last == last and mark.group == group then
      ended, mark = remove(prefix, mark, last_event, texts), nil
    end
    let_leave(prefix, math.max(leave_min, 2 * ended))
    if mark and mark.group ~= '' and mark.group == refused then disband(mark) end
    if takes == '1' and mark then
      found[#found + 1] = prefix
    elseif takes == '1' then
      free[#free + 1] = prefix
    end
  end
end

-- Pieces that were marked before come first, as they were marked.
local groups = {}
for _, prefix in ipairs(found) do
  local mark = mark_of(prefix)
  local known = groups[mark.group]
  if known then
    if known[2] == 2 then table.insert(known[3], read(prefix, mark.first, mark.last)) end
  elseif has_read and (rows_left <= 0 or bytes_left <= 0) then
    more[#more + 1] = prefix
  elseif mark.group == '' then
    local piece = read(prefix, mark.first, mark.last)
    if #piece[4] > 0 then
      batches[#batches + 1] = { '', 1, { piece } }
    else
      redis.call('DEL', prefix .. ':mark')
      free[#free + 1] = prefix
    end
  else
    local batch = { mark.group, 2, {} }
    if is_whole(mark) then
      batch[2] = 1
      for one, first, last in mark.list:gmatch('(%S+) (%S+) (%S+)') do table.insert(batch[3], read(one, first, last)) end
    else
      batch[3] = { read(prefix, mark.first, mark.last) }
    end
    batches[#batches + 1], groups[mark.group] = batch, batch
  end
  if (sizes[prefix] or 0) > 0 and redis.call('XLEN', prefix .. ':outbox') > sizes[prefix] then more[#more + 1] = prefix end
end

local fresh = {}
for _, prefix in ipairs(free) do fresh[#fresh + 1] = take(prefix) or nil end
for i = 1, #fresh, pieces_max do
  local pieces, lines = { unpack(fresh, i, math.min(i + pieces_max - 1, #fresh)) }, {}
  for k, piece in ipairs(pieces) do lines[k] = table.concat(piece, ' ', 1, 3) end
  local list = table.concat(lines, '\n')
  local group = #pieces > 1 and 'g:' .. redis.sha1hex(list) or ''
  for _, piece in ipairs(pieces) do
    redis.call('SET', piece[1] .. ':mark', mark_text(piece[2], piece[3], group, list))
  end
  batches[#batches + 1] = { group, 0, pieces }
end
return { fenced, batches, more, said }
