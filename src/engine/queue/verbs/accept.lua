-- Counts requests in their tenants' rate windows and queues jobs.
--
-- KEYS[n]   prefix of a shard in the call
--
-- ARGV[1]   1 if an earlier try of this call may have landed
-- ARGV[2]   first job in the call, or first message of a run of a batch ("" none)
-- ARGV[3]   ms that a try may be in flight
-- ARGV[4]   slices in a rate window
-- ARGV[5]   ms of a slice
-- ARGV[6]   ms that an idempotency key is kept
-- then for each shard:
--   1       its number
--   2       number of its groups
-- and for each group:
--   1       tenant
--   2       requests per minute (-1: already counted)
--   3       most unfinished jobs (-1: no bound)
--   4       most bytes of their payloads (-1: no bound)
--   5       number of its items
--   6       "<base job id> <fingerprint> <idempotency key>" of a batch whose messages they are ("" none)
--   7       most bytes that its idempotency keys may take (-1: no bound)
-- and for each item:
--   1       queue entry ("" only counts); of a job that is to be sent later, behind "<LATER><unix ms> <caller> " (due_at)
--   2       "<fingerprint> <idempotency key>" ("" none); of a batch under a key the message's index, which rises
--
-- Returns one text per item:
--   ACCEPTED<remaining requests>     (0 if none are counted; behind it " earlier" if another call of the batch has queued it)
--   COUNTED<remaining>               a request without a job
--   CONFLICT<remaining>              the idempotency key belongs to another request
--   REPLAYED<remaining> <job id>     (of a batch: the base job id that has the key)
--   LIMITED<remaining> <seconds until a request is accepted>
--   QUEUE_FULL<remaining> jobs|bytes|keys  the tenant's share is used up
--
-- Refused before its first line when Redis is out of memory (no allow-oom): an accept lands whole or not at all.
-- Safe to repeat: a repeat looks at the records, and a job whose record exists was accepted. A repeat also leaves a
-- mark: an earlier try that arrives after its own repeat has no effect, because its caller has the repeat's answer.

local call = redis.call
local is_repeat, first_job, in_flight_ms = ARGV[1] == '1', ARGV[2], ARGV[3]
local slices, slice_ms, idem_ms = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local out, at = {}, 7
local GROUP_ARGS, ITEM_ARGS = 7, 2
local now = now_ms()
local slice_now = math.floor(now / slice_ms)

if first_job ~= '' then
  local mark = KEYS[1] .. ':repeated:' .. first_job
  if is_repeat then
    call('SET', mark, 1, 'PX', in_flight_ms)
  elseif call('EXISTS', mark) == 1 then
    return out
  end
end

-- Drops slices that have left the window: whole slices, the oldest counted whole, which keeps any 60 seconds within the
-- limit. At most once per second and tenant.
local function roll(tenant, key)
  if math.abs(slice_now - tenant.slice) > slices then
    -- All slices have expired; or the clock was set back, and a new window is better than one that never moves.
    call('DEL', key)
    tenant.first, tenant.total = slice_now, 0
  elseif slice_now < tenant.slice then
    return
  else
    -- An expired slice is past, or was past while the clock was ahead: it must not stay in the total.
    if call('EXISTS', key) == 0 then tenant.first, tenant.total = tenant.slice, tenant.here end
    if tenant.here > 0 then
      call('HSET', key, tenant.slice, tenant.here)
      call('PEXPIRE', key, (slices + 2) * slice_ms)
    end
    local expired = {}
    for old = tenant.first, math.min(slice_now - slices - 1, tenant.slice) do expired[#expired + 1] = old end
    if #expired > 0 then
      for _, count in ipairs(call('HMGET', key, unpack(expired))) do
        tenant.total = tenant.total - tonumber(count or '0')
      end
      call('HDEL', key, unpack(expired))
      tenant.first = math.min(slice_now, tenant.first + #expired)
    end
  end
  tenant.slice, tenant.here, tenant.changed = slice_now, 0, true
end

-- The window of a tenant whose requests all arrived in this very slice accepts requests again 60 seconds after the last
-- of them, not only when the whole slice has expired: no caller has to wait for longer than the window. The field holds
-- "<slice> <requests> <ms>".
local LAST_REQUEST = 'last'
local function note_last_request(tenant, key)
  local known = call('HGET', key, LAST_REQUEST) or ''
  local counted = tenant.slice .. ' ' .. tenant.total .. ' '
  if known:sub(1, #counted) == counted then return end
  call('HSET', key, LAST_REQUEST, counted .. string.format('%.0f', now))
  call('PEXPIRE', key, (slices + 2) * slice_ms)
end

-- In a window that is used up, drops the oldest slice if its last request is known to have left the window.
local function has_room(tenant, key, limit)
  local oldest = slice_now - slices
  if tenant.first > oldest or tenant.slice ~= slice_now then return false end
  local slice, _, last = (call('HGET', key, LAST_REQUEST) or ''):match('^(%d+) (%d+) (%d+)$')
  if tonumber(slice) ~= oldest or now < last + slices * slice_ms then return false end
  tenant.total = tenant.total - tonumber(call('HGET', key, oldest) or '0')
  tenant.first, tenant.changed = oldest + 1, true
  call('HDEL', key, oldest, LAST_REQUEST)
  return tenant.total < limit
end

local function seconds_until_room(tenant, key)
  local oldest = tenant.slice
  for slice = tenant.first, tenant.slice - 1 do
    if tonumber(call('HGET', key, slice) or '0') > 0 then oldest = slice break end
  end
  if oldest == slice_now then note_last_request(tenant, key) end
  local room_at = (oldest + slices + 1) * slice_ms
  return math.max(1, math.ceil(math.min(room_at - now, slices * slice_ms) / 1000))
end

-- When an item's job is to be sent (Unix time in ms, false at once), by which clock, and its entry.
local LATER_BYTE, ITEM_OF_LATER = LATER:byte(), '^' .. LATER .. '(%d+) (-?%d+) (.*)$'
local function read_item(text)
  if text:byte() ~= LATER_BYTE then return false, false, text end
  return text:match(ITEM_OF_LATER)
end

-- Caches the last record key: the jobs of one call arrive at about the same time and mostly share it.
local last_stem, last_key
local function record_key(prefix, job)
  local stem = job:sub(1, FIELD_AT - 1)
  if last_stem ~= stem then last_stem, last_key = stem, bucket_key(prefix, job) end
  return last_key
end

-- The count of a new entry is one digit.
local SCREENING_BYTE = SCREENING:byte()
local function first_status(entry)
  return entry:byte(COUNT_AT + 1) == SCREENING_BYTE and STATUS_HELD_PENDING or STATUS_PENDING
end

-- Reads the state of the shard's tenants in the call, and the number of the shard's last entry, in one read.
local function read_tenants(prefix, groups)
  local names, from = { '' }, at
  for _ = 1, groups do
    names[#names + 1] = ARGV[from]
    from = from + GROUP_ARGS + ITEM_ARGS * ARGV[from + 4]
  end
  local tenants, texts = {}, call('HMGET', prefix .. ':tenants', unpack(names))
  for i = 2, #names do
    local jobs, bytes, first, total, slice, here = tenant_state(texts[i])
    tenants[names[i]] = { jobs = jobs, bytes = bytes, first = first, total = total, slice = slice, here = here }
  end
  return tenants, tonumber(texts[1] or '0')
end

-- Bytes that an idempotency key takes besides its Redis key, measured; for a batch twice as many, for the record of
-- what it queued.
local CLAIM_BYTES = 210

local function claimed_bytes(prefix, tenant)
  local hours, sum, _, first = call('HGETALL', prefix .. ':claims:' .. tenant), 0, claim_hours(idem_ms)
  for i = 1, #hours, 2 do
    if tonumber(hours[i]) >= first then sum = sum + tonumber(hours[i + 1]) end
  end
  return sum
end

-- A batch under an idempotency key. Its first queued message claims the key, and the call that queues messages records
-- their indexes, so a repeat of the batch queues the rest without duplicates, even if the jobs' records are gone.
local function open_batch(prefix, tenant, text, first_index)
  if text == '' then return nil end
  local claim, key = text:match('^(%S+ %S+) (.*)$')
  local idem_key, queued_key = prefix .. ':idem:' .. tenant .. ':' .. key, prefix .. ':batch:' .. entry_job(claim)
  local batch = { claim = claim, idem_key = idem_key, queued_key = queued_key, queued = {}, notes = {} }
  local first = call('GET', idem_key)
  batch.is_new = not first
  batch.claim_bytes = first and 0 or 2 * CLAIM_BYTES + #idem_key + #queued_key
  if first and first ~= claim then
    local is_same = first:sub(JOB_ID_CHARS + 2) == claim:sub(JOB_ID_CHARS + 2)
    batch.refusal = is_same and REPLAYED .. '0 ' .. first:sub(1, JOB_ID_CHARS) or CONFLICT .. 0
  elseif first then
    for from, to in (call('GET', queued_key) or ''):gmatch('(%d+)-(%d+)') do
      if tonumber(to) >= first_index then for index = tonumber(from), tonumber(to) do batch.queued[index] = true end end
    end
  end
  return batch
end

local function note_queued(batch, index)
  local last = batch.notes[#batch.notes]
  if last and last.to == index - 1 then last.to = index else batch.notes[#batch.notes + 1] = { from = index, to = index } end
end

-- Returns the bytes of its claim, if it is a new one.
local function close_batch(batch)
  if not batch or #batch.notes == 0 then return 0 end
  if batch.is_new then call('SET', batch.idem_key, batch.claim, 'PX', idem_ms) end
  local ranges = {}
  for i, note in ipairs(batch.notes) do ranges[i] = note.from .. '-' .. note.to .. ' ' end
  call('APPEND', batch.queued_key, table.concat(ranges))
  -- The record outlives the claim: without it a repeat would queue all messages again.
  call('PEXPIRE', batch.queued_key, idem_ms + in_flight_ms)
  return batch.claim_bytes
end

for k = 1, #KEYS do
  local prefix, number, groups = KEYS[k], ARGV[at], tonumber(ARGV[at + 1])
  at = at + 2
  local tenants, last_entry = read_tenants(prefix, groups)
  local ready, writes, parked, later = {}, {}, {}, {}
  last_stem = nil

  for _ = 1, groups do
    local name, limit, items = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 4])
    local jobs_max, bytes_max = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
    local batch = open_batch(prefix, name, ARGV[at + 5], tonumber(ARGV[at + GROUP_ARGS + 1]))
    local claims_max, claims = tonumber(ARGV[at + 6]), 0
    local claimed = claims_max >= 0 and claimed_bytes(prefix, name) or 0
    at = at + GROUP_ARGS
    local tenant, is_counted = tenants[name], limit >= 0
    if is_counted and tenant.slice ~= slice_now then roll(tenant, prefix .. ':rate:' .. name) end

    for item = at, at + ITEM_ARGS * (items - 1), ITEM_ARGS do
      local idem = ARGV[item + 1]
      local due, caller, entry = read_item(ARGV[item])
      local job, index, answer = entry_job(entry), batch and tonumber(idem), nil
      if batch and batch.refusal then
        answer = batch.refusal
      elseif batch and batch.queued[index] then
        -- For a repeat it is unknown whether its own first try counted the request.
        answer = ACCEPTED .. (is_counted and math.max(0, limit - tenant.total) or 0) .. (is_repeat and '' or ' earlier')
      elseif is_repeat and entry ~= '' and call('HEXISTS', record_key(prefix, job), bucket_field(job)) == 1 then
        answer = ACCEPTED .. (is_counted and math.max(0, limit - tenant.total) or 0)
      elseif is_counted and tenant.total >= limit and not has_room(tenant, prefix .. ':rate:' .. name, limit) then
        answer = LIMITED .. '0 ' .. seconds_until_room(tenant, prefix .. ':rate:' .. name)
      else
        local remaining = 0
        if is_counted then
          tenant.total, tenant.here, tenant.changed = tenant.total + 1, tenant.here + 1, true
          remaining = limit - tenant.total
        end
        local fingerprint, idem_key, first
        if idem ~= '' and not batch then
          local space = idem:find(' ', 1, true)
          fingerprint, idem_key = idem:sub(1, space - 1), prefix .. ':idem:' .. name .. ':' .. idem:sub(space + 1)
          first = call('GET', idem_key)
        end
        local bytes = entry == '' and 0 or payload_bytes(entry)
        local claim = batch and batch.claim_bytes or idem_key and CLAIM_BYTES + #idem_key or 0
        if entry == '' then
          answer = COUNTED .. remaining
        elseif first then
          local is_same = first:sub(JOB_ID_CHARS + 2) == fingerprint
          answer = is_same and REPLAYED .. remaining .. ' ' .. first:sub(1, JOB_ID_CHARS) or CONFLICT .. remaining
        elseif jobs_max >= 0 and tenant.jobs >= jobs_max then
          answer = QUEUE_FULL .. remaining .. ' jobs'
        elseif bytes_max >= 0 and tenant.bytes + bytes > bytes_max then
          answer = QUEUE_FULL .. remaining .. ' bytes'
        elseif claims_max >= 0 and claim > 0 and claimed + claims + claim > claims_max then
          answer = QUEUE_FULL .. remaining .. ' keys'
        else
          answer = ACCEPTED .. remaining
          local channel, key = entry_channel(entry), record_key(prefix, job)
          local later_at, time_of_day
          if due then later_at, time_of_day = due_at(prefix, due, caller) end
          local id
          if later_at then
            id, tenant.changed = LATER .. string.format('%.0f', time_of_day), true
            parked[#parked + 1], parked[#parked + 2] = job, parked_text(name .. '/' .. channel, '', entry)
            later[#later + 1], later[#later + 2] = string.format('%.0f', later_at), job
          else
            local queued_at = tenant[channel]
            if not queued_at then
              local tenant_queue = name .. '/' .. channel
              queued_at = queue_key(prefix, tenant_queue)
              tenant[channel], tenant.changed = queued_at, true
              ready[#ready + 1] = tenant_queue
            end
            last_entry = next_entry(last_entry)
            id = entry_id(last_entry)
            add_entry(queued_at, id, entry)
          end
          local records = writes[key]
          if not records then
            records = {}
            writes[key] = records
          end
          records[#records + 1] = bucket_field(job)
          records[#records + 1] = name .. ' ' .. channel .. first_status(entry) .. '0 ' .. id
          tenant.jobs, tenant.bytes = tenant.jobs + 1, tenant.bytes + bytes
          if idem_key then
            call('SET', idem_key, job .. ' ' .. fingerprint, 'PX', idem_ms)
            claims = claims + claim
          end
          if batch then note_queued(batch, index) end
        end
      end
      out[#out + 1] = answer
    end
    at = at + ITEM_ARGS * items
    claims = claims + close_batch(batch)
    if claims > 0 then note_claims(prefix, name, claims, idem_ms) end
  end

  for key, records in pairs(writes) do call('HSET', key, unpack(records)) end
  if #parked > 0 then
    call('HSET', prefix .. ':parked', unpack(parked))
    call('ZADD', prefix .. ':later', unpack(later))
  end
  local states = { '', entry_number(last_entry) }
  for name, tenant in pairs(tenants) do
    if tenant.changed then
      states[#states + 1] = name
      states[#states + 1] = load_text(tenant.jobs, tenant.bytes)
        .. ' ' .. tenant.first .. ' ' .. tenant.total .. ' ' .. tenant.slice .. ' ' .. tenant.here
    end
  end
  if #states > 2 then call('HSET', prefix .. ':tenants', unpack(states)) end
  if #ready > 0 and call('SADD', prefix .. ':ready', unpack(ready)) > 0 then call('PUBLISH', JOBS_CHANNEL, number) end
end
return out
