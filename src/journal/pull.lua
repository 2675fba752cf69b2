-- Hands the owner of a shard its next jobs.
-- KEYS: the shard's prefix.
-- ARGV: lease token, survey (1 names every box with mail again), the shard's time by the owner's reckoning ("" none) and
--       how far it may be off (ms), most due retries, most ready boxes, most bytes of entries in the call, then four
--       values a box: its name, the last entry that was read ("" none), most entries, most bytes.
-- Returns false when the lease is not held. Otherwise: whether more is waiting, ms until the next retry is due (-1 none),
--       the boxes with unpulled mail, a list a box: whether it has more, then of each job entry id, entry, and the
--       suppression reason ("" none) or "!" where a report says that its provider has it; the shard's time (ms), and what
--       was put into quarantine.
-- A pulled job is running because its entry is not beyond its box's cursor: one write a call, none a job.
-- Bytes are of entries. The call's first entry is handed out although it is too large, and so is a box's first where the
-- call has room for it; no other entry goes beyond the bytes of its box or of the call.

local prefix, token = KEYS[1], ARGV[1]
if not holds_lease(prefix, 'dispatcher', token) then return false end

local later, parked, ready_key = prefix .. ':later', prefix .. ':parked', prefix .. ':ready'
local due_max, ready_max, bytes_max = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local said = {}

-- A step of Redis' clock is not one of the shard's time. What calls take is none either. A call that comes late reckons with
-- a time that has passed: it is answered as of the last pull and agrees on nothing, least of all on a step that it hides.
-- Who reckons with nothing yet goes on from the last pull at the earliest: nothing waits for a clock that was set back.
local time, agreed = shard_clock(prefix)
local reckoned, slack = tonumber(ARGV[3]), tonumber(ARGV[4])
if reckoned and reckoned < agreed - slack then
  time = agreed
else
  if not reckoned then time = math.max(time, agreed) elseif math.abs(time - reckoned) > slack then time = reckoned end
  redis.call('SET', prefix .. ':skew', string.format('%.0f %.0f', time - now_ms(), time))
end

-- A delivery that was lent may go on for the time of its loan, and while nobody owned the shard a step of Redis' clock can have
-- hidden how much of that is left: to a new owner it begins anew.
if not reckoned then
  local loans = redis.call('HGETALL', prefix .. ':loans')
  for i = 1, #loans, 2 do
    local due = redis.call('ZSCORE', later, loans[i])
    if due and tonumber(due) < time + tonumber(loans[i + 1]) then
      redis.call('ZADD', later, time + tonumber(loans[i + 1]), loans[i])
    end
  end
end

if ARGV[2] == '1' then redis.call('SUNIONSTORE', ready_key, ready_key, prefix .. ':held') end

-- How many to read at once so that little is read that there is no room for: by the bytes of those that were read before.
local seen, seen_bytes = 0, 0
local function step_for(room, last)
  if seen == 0 then return last end
  return math.max(1, math.min(4 * last, math.floor(room * seen / math.max(1, seen_bytes)) + 1))
end
local function saw(bytes) seen, seen_bytes = seen + 1, seen_bytes + bytes end

-- Brings due jobs back into their boxes. Answers whether more are due than may be moved at once.
local function move_due()
  local due = redis.call('ZRANGEBYSCORE', later, '-inf', time, 'LIMIT', 0, due_max)
  if #due == 0 then return false end
  local moved, boxes, box_names, bytes, step = {}, {}, {}, 0, 8
  local number = tonumber(redis.call('HGET', prefix .. ':tenants', '') or '0')
  while #moved < #due and bytes < bytes_max do
    step = step_for(bytes_max - bytes, step)
    local first = #moved + 1
    local values = redis.call('HMGET', parked, unpack(due, first, math.min(first + step - 1, #due)))
    for i, value in ipairs(values) do
      if bytes >= bytes_max then break end
      local job = due[first + i - 1]
      local space = value and value:find(' ', 1, true)
      local box = space and value:sub(1, space - 1):match('^[^!]+')
      local entry = space and value:sub(space + 1)
      if is_box(box) and is_entry(entry) then
        number = next_entry(number)
        redis.call('XADD', prefix .. ':box:' .. box, entry_id(number), 'p', entry)
        bytes = bytes + #entry
        saw(#entry)
        if not boxes[box] then
          boxes[box] = true
          box_names[#box_names + 1] = box
        end
      else
        quarantine(prefix, said, 'parked', job, value and 'no box and entry' or 'nothing is parked', value)
      end
      moved[#moved + 1] = job
    end
  end
  redis.call('HDEL', parked, unpack(moved))
  redis.call('ZREM', later, unpack(moved))
  redis.call('HDEL', prefix .. ':loans', unpack(moved))
  redis.call('HSET', prefix .. ':tenants', '', entry_number(number))
  if #box_names > 0 then redis.call('SADD', ready_key, unpack(box_names)) end
  return #moved < #due or #due == due_max
end
local more_due = move_due()

local ready, popped = {}, redis.call('SPOP', ready_key, ready_max)
for _, box in ipairs(popped) do
  if is_box(box) then ready[#ready + 1] = box else quarantine(prefix, said, 'box', box, 'not the name of a box', '') end
end
if #ready > 0 then redis.call('SADD', prefix .. ':held', unpack(ready)) end

local room, is_first = bytes_max, true
local function read_box(box, after, entries_max, box_room)
  local key, from, read, step = prefix .. ':box:' .. box, after == '' and '-' or '(' .. after, {}, 4
  if room <= 0 then return read, true end
  while true do
    -- One more than is wanted, so that it is known whether there is more.
    step = math.min(step_for(math.min(room, box_room), step), entries_max + 1 - #read)
    local entries = redis.call('XRANGE', key, from, '+', 'COUNT', step)
    for _, entry in ipairs(entries) do
      local value = entry[2][2]
      if is_entry(value) then
        local bytes = #value
        saw(bytes)
        if #read == entries_max or (not is_first and bytes > room) or (#read > 0 and bytes > box_room) then
          return read, true
        end
        read[#read + 1] = entry
        room, box_room, is_first = room - bytes, box_room - bytes, false
      else
        quarantine_entry(prefix, said, box, entry[1], 'not a box entry', value)
      end
      from = '(' .. entry[1]
    end
    if #entries < step then
      if #read == 0 and after == '' then redis.call('SREM', prefix .. ':held', box) end
      return read, false
    end
  end
end

local function is_beyond(entry, cursor)
  local ms, seq = entry:match('^(%d+)-(%d+)$')
  local cursor_ms, cursor_seq = (cursor or ''):match('^(%d+)-(%d+)$')
  if not cursor_ms then return true end
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

-- A new owner reads a box from its start: what was running stays so, a cursor never goes back.
local names, cursors, moved_cursors = {}, {}, {}
for at = 8, #ARGV, 4 do names[#names + 1] = ARGV[at] end
if #names > 0 then
  for i, cursor in ipairs(redis.call('HMGET', prefix .. ':cursor', unpack(names))) do cursors[names[i]] = cursor end
end

local boxes = {}
for at = 8, #ARGV, 4 do
  local box = ARGV[at]
  local read, more = read_box(box, ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]))
  local suppressed = prefix .. ':suppressed:' .. box:match('^[^/]+')
  local has_suppressed = #read > 0 and redis.call('EXISTS', suppressed) == 1
  local cursor, cells, is_first_pull = cursors[box], { more and 1 or 0 }, false
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
  if last and is_beyond(last[1], cursor) then
    cursors[box] = last[1]
    moved_cursors[#moved_cursors + 1] = box
    moved_cursors[#moved_cursors + 1] = last[1]
  end
  boxes[#boxes + 1] = cells
end
if #moved_cursors > 0 then redis.call('HSET', prefix .. ':cursor', unpack(moved_cursors)) end

local next_due = redis.call('ZRANGE', later, 0, 0, 'WITHSCORES')
local wait = next_due[2] and math.max(0, next_due[2] - time) or -1
return { (more_due or #popped == ready_max) and 1 or 0, wait, ready, boxes, time, said }
