-- Hands recorders the next pieces of their shards' outboxes, and freezes each piece before it hands it out.
--
-- KEYS[n]   prefix of a shard; several only if all shards are in one Redis
--
-- ARGV[1]   most rows of the call
-- ARGV[2]   most outbox entries of the call
-- ARGV[3]   most bytes of the call
-- ARGV[4]   ms that a finished job is kept
-- ARGV[5]   how many jobs may leave a shard at least
-- ARGV[6]   most pieces per group
-- then for each shard:
--   1       lease token
--   2       1 if its next piece is requested
--   3       the group that the event store refuses ("" none)
--   4       first entry of the piece that the event store has ("" none)
--   5       last entry of that piece
--   6       its group ("" alone)
--   7       its last event
--   8       the contents of failed jobs in it, "<tenant> <bytes> <tenant> <bytes> ..."
--   9       number of the texts that follow
--   10 ...  the jobs that ended in the piece, "<job id> <job id> ..."
--
-- Returns:
--   1       prefixes whose lease is not held
--   2       batches, each a list: its group ("" for a piece alone), its state, and its pieces, each a list: prefix, first
--           and last entry, and the rows, one text per entry. The state is FROZEN by this call, FOUND frozen by an
--           earlier one, or RECORDED, known to be in the event store.
--   3       prefixes that hold more
--   4       the quarantined data: prefix, kind and location alternately
--
-- A group is written to the marks of all its pieces at one instant, and a mark with a group is removed only when its
-- piece is taken off the outbox, or together with all the others (`disband`). If one of a group's marks is gone, the
-- event store therefore has the group; if all marks are there, all its rows are still here.

local rows_left, entries_left, bytes_left = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local kept_ms, leave_min, pieces_max = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local has_read = false
local SHARD_ARGS = 9
-- Positions in a batch and in a piece.
local STATE, PIECES = 2, 3
local PREFIX, FIRST, LAST, TEXTS = 1, 2, 3, 4
local function jobs_in(text) return math.ceil(#text / (JOB_ID_CHARS + 1)) end

local function mark_text(first, last, group, list)
  if group == '' then return first .. ' ' .. last end
  return first .. ' ' .. last .. ' ' .. group .. '\n' .. list
end

local function read_mark(prefix)
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

-- Contents that left the outbox make room for others.
local function note_kept(prefix, contents)
  local key, all = prefix .. ':keeping', 0
  for tenant, bytes in contents:gmatch('(%S+) (%d+)') do
    all = all + tonumber(bytes)
    if redis.call('HINCRBY', key, tenant, -bytes) <= 0 then redis.call('HDEL', key, tenant) end
  end
  local left = redis.call('HINCRBY', key, '', -all)
  if left <= 0 or redis.call('XLEN', prefix .. ':outbox') == 0 then redis.call('DEL', key) end
end

-- Takes the marked piece off the outbox. Returns how many jobs ended in it.
local function remove(prefix, mark, last_event, contents, texts)
  local ms, seq = mark.last:match('^(%d+)-(%d+)$')
  redis.call('XTRIM', prefix .. ':outbox', 'MINID', '=', ms .. '-' .. string.format('%.0f', seq + 1))
  redis.call('DEL', prefix .. ':mark')
  if tonumber(last_event) > tonumber(redis.call('GET', prefix .. ':recorded') or '0') then
    redis.call('SET', prefix .. ':recorded', last_event)
  end
  if contents ~= '' then note_kept(prefix, contents) end
  local ended = 0
  for _, jobs in ipairs(texts) do ended = ended + jobs_in(jobs) end
  note_leaving(prefix, agreed_ms(prefix), texts)
  return ended
end

local function is_complete(record, recorded)
  local _, _, status = record_state(record)
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

-- Removes finished jobs, the longest kept first: more than arrive, so that they do not accumulate. A job with an event
-- that is not yet in the event store stays for another period. A clock that was far off does not keep jobs here.
local function let_leave(prefix, jobs_max)
  local leaving, time = prefix .. ':leaving', nil
  local recorded = tonumber(redis.call('GET', prefix .. ':recorded') or '0')
  local seen, staying, is_young = 0, {}, false
  while seen < jobs_max and not is_young do
    -- Reads only the first one, which is mostly too young.
    local texts, taken = redis.call('LRANGE', leaving, 0, seen == 0 and 0 or TOGETHER_MAX - 1), 0
    if #texts == 0 then break end
    time = time or agreed_ms(prefix)
    for _, text in ipairs(texts) do
      local since, jobs = text:match('^(%d+) (.*)$')
      is_young = since ~= nil and math.abs(time - tonumber(since)) < kept_ms
      if is_young or seen >= jobs_max then break end
      taken, seen = taken + 1, seen + math.max(1, jobs_in(jobs or ''))
      remove_complete(prefix, jobs or '', recorded, staying)
    end
    if taken > 0 then redis.call('LTRIM', leaving, taken, -1) end
  end
  local texts = {}
  for i = 1, #staying, TOGETHER_MAX do
    texts[#texts + 1] = table.concat(staying, ' ', i, math.min(i + TOGETHER_MAX - 1, #staying))
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
    local count, text = parse_rows(entry)
    texts[i] = text or ''
    rows_left, bytes_left = rows_left - (count or 0), bytes_left - #texts[i]
  end
  has_read, sizes[prefix] = true, #texts
  entries_left = entries_left - #texts
  return { prefix, first, last, texts }
end

-- Returns the next piece of an outbox, if any. Reads in growing steps, so that rows with large results are not read far
-- beyond the requested bytes.
local function take(prefix)
  local outbox, from, step, is_full = prefix .. ':outbox', '-', 4, false
  local first, last, texts = nil, nil, {}
  while not is_full and entries_left > 0 do
    step = math.min(2 * step, entries_left)
    local entries = redis.call('XRANGE', outbox, from, '+', 'COUNT', step)
    for _, entry in ipairs(entries) do
      local id, fields = get_id(entry), entry[2]
      local count, text = parse_rows(entry)
      from = '(' .. id
      if count and text then
        is_full = has_read and (count > rows_left or #text > bytes_left)
        if is_full then break end
        rows_left, bytes_left, entries_left = rows_left - count, bytes_left - #text, entries_left - 1
        first, last, has_read = first or id, id, true
        texts[#texts + 1] = text
      else
        said[#said + 1] = prefix
        quarantine(prefix, said, 'outbox', id, 'no rows', table.concat(fields, ' '))
        redis.call('XDEL', outbox, id)
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
  local token, takes, refused, first, last, group, last_event, contents, count = unpack(ARGV, at, at + SHARD_ARGS - 1)
  local texts = { unpack(ARGV, at + SHARD_ARGS, at + SHARD_ARGS - 1 + count) }
  at = at + SHARD_ARGS + count
  if not holds_lease(prefix, 'recorder', token) then
    fenced[#fenced + 1] = prefix
  else
    local mark, ended = read_mark(prefix), 0
    -- A repeated call finds another mark, or none, and has no effect.
    if mark and mark.first == first and mark.last == last and mark.group == group then
      ended, mark = remove(prefix, mark, last_event, contents, texts), nil
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

-- Pieces that were already marked come first, in the order of their marks.
local groups = {}
for _, prefix in ipairs(found) do
  local mark = read_mark(prefix)
  local known = groups[mark.group]
  if known then
    if known[STATE] == RECORDED then table.insert(known[PIECES], read(prefix, mark.first, mark.last)) end
  elseif has_read and (rows_left <= 0 or bytes_left <= 0) then
    more[#more + 1] = prefix
  elseif mark.group == '' then
    local piece = read(prefix, mark.first, mark.last)
    if #piece[TEXTS] > 0 then
      batches[#batches + 1] = { '', FOUND, { piece } }
    else
      redis.call('DEL', prefix .. ':mark')
      free[#free + 1] = prefix
    end
  else
    local pieces, is_all_here = {}, is_whole(mark)
    if is_all_here then
      for one, first, last in mark.list:gmatch('(%S+) (%S+) (%S+)') do table.insert(pieces, read(one, first, last)) end
    else
      pieces[1] = read(prefix, mark.first, mark.last)
    end
    local batch = { mark.group, is_all_here and FOUND or RECORDED, pieces }
    batches[#batches + 1], groups[mark.group] = batch, batch
  end
  if (sizes[prefix] or 0) > 0 and redis.call('XLEN', prefix .. ':outbox') > sizes[prefix] then more[#more + 1] = prefix end
end

local fresh = {}
for _, prefix in ipairs(free) do fresh[#fresh + 1] = take(prefix) or nil end
for i = 1, #fresh, pieces_max do
  local pieces, lines = { unpack(fresh, i, math.min(i + pieces_max - 1, #fresh)) }, {}
  for k, piece in ipairs(pieces) do lines[k] = table.concat(piece, ' ', PREFIX, LAST) end
  local list = table.concat(lines, '\n')
  local group = #pieces > 1 and 'g:' .. redis.sha1hex(list) or ''
  for _, piece in ipairs(pieces) do
    redis.call('SET', piece[PREFIX] .. ':mark', mark_text(piece[FIRST], piece[LAST], group, list))
  end
  batches[#batches + 1] = { group, FROZEN, pieces }
end
return { fenced, batches, more, said }
