-- Hands the owner of a shard its next jobs.
-- KEYS: the shard's prefix.
-- ARGV: lease token, survey (1 names every box with mail again), most due retries, most ready boxes, most bytes a box,
--       then three values a box: its name, the last entry that was read ("" none), most entries.
-- Returns false when the lease is not held. Otherwise: whether more is waiting, ms until the next retry is due (-1 none),
--       the boxes with unpulled mail, and a list a box: whether it has more, then of each job entry id, entry, and the
--       suppression reason ("" none) or "!" where a report says that its provider has it.
-- A pulled job is running because its entry is not beyond its box's cursor: one write a box, none a job.

local prefix, token = KEYS[1], ARGV[1]
if not holds_lease(prefix, 'dispatcher', token) then return false end

local later, parked, ready_key = prefix .. ':later', prefix .. ':parked', prefix .. ':ready'
local due_max, ready_max, bytes_max = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

if ARGV[2] == '1' then redis.call('SUNIONSTORE', ready_key, ready_key, prefix .. ':held') end

local due = redis.call('ZRANGEBYSCORE', later, '-inf', now_ms(), 'LIMIT', 0, due_max)
for _, job in ipairs(due) do
  local value = redis.call('HGET', parked, job)
  local space = value:find(' ', 1, true)
  local box = value:sub(1, space - 1)
  redis.call('XADD', prefix .. ':box:' .. box, '*', 'p', value:sub(space + 1))
  redis.call('SADD', ready_key, box)
  redis.call('HDEL', parked, job)
  redis.call('ZREM', later, job)
end

local ready = redis.call('SPOP', ready_key, ready_max)
if #ready > 0 then redis.call('SADD', prefix .. ':held', unpack(ready)) end

-- Reads in growing steps, so that a box of large entries is not read far beyond the bytes that are asked for.
local function read_box(box, after, entries_max)
  local key, read, bytes, more = prefix .. ':box:' .. box, {}, 0, false
  local from, step = after == '' and '-' or '(' .. after, 4
  while #read < entries_max do
    step = math.min(2 * step, entries_max - #read)
    local entries = redis.call('XRANGE', key, from, '+', 'COUNT', step)
    for _, entry in ipairs(entries) do
      read[#read + 1] = entry
      bytes = bytes + #entry[2][2]
      from = '(' .. entry[1]
    end
    more = #entries == step
    if not more or bytes >= bytes_max then break end
  end
  if #read == 0 and after == '' then redis.call('SREM', prefix .. ':held', box) end
  return read, more
end

local function is_beyond(entry, cursor)
  if not cursor then return true end
  local ms, seq = entry:match('^(%d+)-(%d+)$')
  local cursor_ms, cursor_seq = cursor:match('^(%d+)-(%d+)$')
  ms, cursor_ms = tonumber(ms), tonumber(cursor_ms)
  return ms > cursor_ms or (ms == cursor_ms and tonumber(seq) > tonumber(cursor_seq))
end

-- What is suppressed when it is first pulled never runs: its record says that it is pending although it was pulled.
local function mark_suppressed(entry)
  local job = entry:sub(1, 36)
  local bucket, field = bucket_key(prefix, job), bucket_field(job)
  local record = redis.call('HGET', bucket, field)
  if record then redis.call('HSET', bucket, field, (record:gsub('^(%S+ %a)p', '%1q', 1))) end
end

-- Only what has been handed out before can have been reported on: it waited for another try, or its owner has changed.
local function is_reported(entry)
  local record = redis.call('HGET', bucket_key(prefix, entry), bucket_field(entry:sub(1, 36)))
  return record and record:find('\n!', 1, true) ~= nil
end

local boxes = {}
for at = 6, #ARGV, 3 do
  local box = ARGV[at]
  local read, more = read_box(box, ARGV[at + 1], tonumber(ARGV[at + 2]))
  local suppressed = prefix .. ':suppressed:' .. box:match('^[^/]+')
  local has_suppressed = #read > 0 and redis.call('EXISTS', suppressed) == 1
  -- A new owner reads a box from its start: what was running stays so, the cursor never goes back.
  local cursor = #read > 0 and redis.call('HGET', prefix .. ':cursor', box)
  local cells, is_first_pull = { more and 1 or 0 }, false
  for _, entry in ipairs(read) do
    local value = entry[2][2]
    local reason = has_suppressed and redis.call('HGET', suppressed, value:match('^%S+ %S+ ([^\t\n]*)')) or ''
    is_first_pull = is_first_pull or is_beyond(entry[1], cursor)
    if not (is_first_pull and value:find('^0[ q]', 39)) and is_reported(value) then
      reason = '!'
    elseif reason ~= '' and is_first_pull then
      mark_suppressed(value)
    end
    cells[#cells + 1] = entry[1]
    cells[#cells + 1] = value
    cells[#cells + 1] = reason
  end
  local last = read[#read]
  if last and is_beyond(last[1], cursor) then redis.call('HSET', prefix .. ':cursor', box, last[1]) end
  boxes[#boxes + 1] = cells
end

local next_due = redis.call('ZRANGE', later, 0, 0, 'WITHSCORES')
local wait = next_due[2] and math.max(0, next_due[2] - now_ms()) or -1
return { (#due == due_max or #ready == ready_max) and 1 or 0, wait, ready, boxes }
