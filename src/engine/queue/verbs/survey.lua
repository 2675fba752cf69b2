-- Reads a piece of one tenant's or all tenants' jobs in a shard. Read-only.
--
-- KEYS[1]   the shard's prefix
--
-- ARGV[1]   what: queue (newest first), tail (oldest first), parked, outbox (newest first), job, entry (a job's whole) or
--           names
-- ARGV[2]   the tenant queue (queue, tail), the tenant, "" all (parked, outbox), the job, or the set (names: ready or held)
-- ARGV[3]   where to begin: an entry's id, "" the newest (queue, outbox), the entry before (tail), or a cursor (parked,
--           names)
-- ARGV[4]   about how many entries to read
-- ARGV[5]   only entries for this recipient ("" any)
--
-- Returns:
--   1       where to continue ("" at the end)
--   2       how many entries were read, and how many bytes they had
--   3       a list. queue, tail: id and head in turn. parked, job: the tenant queue, when it is due (Unix time in ms, "" it
--           is not parked) and head in turn. outbox: the tenant's rows. names: tenant queues with entries.
--   4       queue, tail, outbox: the id of the first entry that was read
-- A head is an entry without its payload; behind it, if the job has any, "\n{" and its extras (extras.ts).

local prefix, what, name, from, step, recipient = KEYS[1], ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local found, read, bytes = {}, 0, 0

local function cut_head(text)
  if what == 'entry' then return text end
  local extras = text:match('^[^\n]*\n{("%$job":"[^"]*",)') or text:match('^[^\n]*\n{"%$trace":"[^"]*",("%$job":"[^"]*",)')
  return text:match('^[^\n]*') .. (extras and '\n{' .. extras or '')
end
local function saw(text) read, bytes = read + 1, bytes + #text end
local function is_wanted(text) return recipient == '' or entry_recipient(text) == recipient end

local function add_parked(job, parked)
  local tenant_queue, token, text = read_parked(parked)
  if not (is_tenant_queue(tenant_queue) and is_entry(text) and is_wanted(text)) then return end
  local due = redis.call('ZSCORE', prefix .. ':later', job)
  local skew = shard_clock(prefix) - now_ms()
  found[#found + 1] = tenant_queue
  found[#found + 1] = token == '' and due and string.format('%.0f', due - skew) or ''
  found[#found + 1] = cut_head(text)
end

if what == 'job' or what == 'entry' then
  local parked = redis.call('HGET', prefix .. ':parked', name)
  if parked then
    add_parked(name, parked)
  else
    local record = redis.call('HGET', bucket_key(prefix, name), bucket_field(name)) or ''
    local tenant, channel, id = record:match('^(%S+) (%a)%S* (%d+%-%d+)')
    local tenant_queue = tenant and tenant .. '/' .. channel
    local text = tenant and find_entry(prefix, tenant_queue, id)
    if text and entry_job(text) == name then found = { tenant_queue, '', cut_head(text) } end
  end
  return { '', { 0, 0 }, found }
end

if what == 'names' then
  local answer = redis.call('SSCAN', prefix .. ':' .. name, from, 'COUNT', step)
  for _, tenant_queue in ipairs(answer[2]) do
    saw(tenant_queue)
    found[#found + 1] = tenant_queue
  end
  return { answer[1] == '0' and '' or answer[1], { read, bytes }, found }
end

if what == 'parked' then
  local answer = redis.call('HSCAN', prefix .. ':parked', from, 'COUNT', step)
  local pairs_ = answer[2]
  for i = 1, #pairs_, 2 do
    saw(pairs_[i + 1])
    if name == '' or pairs_[i + 1]:sub(1, #name + 1) == name .. '/' then add_parked(pairs_[i], pairs_[i + 1]) end
  end
  return { answer[1] == '0' and '' or answer[1], { read, bytes }, found }
end

local key = what == 'outbox' and prefix .. ':outbox' or queue_key(prefix, name)
local entries
if what == 'tail' then
  entries = redis.call('XRANGE', key, '(' .. from, '+', 'COUNT', step)
else
  entries = redis.call('XREVRANGE', key, from == '' and '+' or '(' .. from, '-', 'COUNT', step)
end
for _, entry in ipairs(entries) do
  if what == 'outbox' then
    local _, rows = parse_rows(entry)
    saw(rows or '')
    local own = name == '' and '' or '["' .. name .. '",'
    local quoted = recipient == '' and '' or json_text(recipient)
    for row in (rows or ''):gmatch('[^\n]+') do
      if row:sub(1, #own) == own and row:find(quoted, 1, true) then found[#found + 1] = row end
    end
  else
    local text = get_text(entry)
    saw(text or '')
    if is_entry(text) and is_wanted(text) then
      found[#found + 1] = get_id(entry)
      found[#found + 1] = cut_head(text)
    end
  end
end
return { #entries < step and '' or get_id(entries[#entries]), { read, bytes }, found, entries[1] and get_id(entries[1]) or '' }
