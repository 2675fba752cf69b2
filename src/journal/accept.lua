-- Counts requests in their tenants' rate windows and queues jobs.
-- KEYS: the prefix of each shard in the call.
-- ARGV: window in slices, slice ms, idempotency ttl ms, then for each shard: its number and how many groups; for each
--       group: its tenant, requests per minute (-1: these were counted before), most unfinished jobs and most bytes of
--       their payloads (-1: no bound) and how many items; for each item: the box entry ("" only counts) and
--       "<fingerprint> <idempotency key>" ("" none).
-- Returns a text an item: a letter, the requests that remain (0 where none are counted), and what the letter calls for:
--       a accepted, n only counted, c idempotency conflict, "r<remaining> <job id>" replayed,
--       "l<remaining> <seconds until there is room>" limited, "q<remaining> jobs|bytes" the tenant's share is used up.
-- Refused before its first line when Redis is out of memory (no allow-oom): an accept lands whole or not at all.
-- Safe to repeat, also for a try that comes behind its own repeat: a job whose record is here was accepted. A record stays
-- for limits.jobKeptMs beyond the job's end, and no try is on its way for nearly as long: what a lost connection held is
-- read by Redis when it reads anything at all, or never.

local call = redis.call
local slices, slice_ms, idem_ttl = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local now = now_ms()
local slice_now = math.floor(now / slice_ms)
local out, at = {}, 4

-- Drops what has left the window: whole slices, the oldest counted whole, so that no 60 seconds ever hold more than the
-- limit. At most once a second and tenant.
local function roll(window, key)
  if math.abs(slice_now - window.slice) > slices then
    -- All of it is past; or the clock was set back, and a new window is better than one that never moves.
    call('DEL', key)
    window.first, window.total = slice_now, 0
  elseif slice_now < window.slice then
    return
  else
    -- What has expired is past, or was while the clock was ahead: it must not stay in the total.
    if call('EXISTS', key) == 0 then window.first, window.total = window.slice, window.here end
    if window.here > 0 then
      call('HSET', key, window.slice, window.here)
      call('PEXPIRE', key, (slices + 2) * slice_ms)
    end
    local expired = {}
    for old = window.first, math.min(slice_now - slices - 1, window.slice) do expired[#expired + 1] = old end
    if #expired > 0 then
      for _, count in ipairs(call('HMGET', key, unpack(expired))) do
        window.total = window.total - tonumber(count or '0')
      end
      call('HDEL', key, unpack(expired))
      window.first = math.min(slice_now, window.first + #expired)
    end
  end
  window.slice, window.here, window.changed = slice_now, 0, true
end

local function open_window(key, state)
  local first, total, slice, here = (state or ''):match('^(%d+) (%d+) (%d+) (%d+)$')
  if not first then return { first = slice_now, total = 0, slice = slice_now, here = 0 } end
  local window = { first = tonumber(first), total = tonumber(total), slice = tonumber(slice), here = tonumber(here) }
  if window.slice ~= slice_now then roll(window, key) end
  return window
end

local function seconds_until_room(window, key)
  local oldest = window.slice
  for slice = window.first, window.slice - 1 do
    if tonumber(call('HGET', key, slice) or '0') > 0 then oldest = slice break end
  end
  return math.max(1, math.ceil(((oldest + slices + 1) * slice_ms - now) / 1000))
end

-- What the call's tenants and jobs are by now: one read of each kind, and of records one a bucket.
local function read_shard(prefix, groups)
  local tenants, buckets, from = {}, {}, at
  local shard = { rates = {}, loads = {}, known = {}, buckets = {}, all_buckets = buckets, ready = {} }
  for _ = 1, groups do
    local tenant, items = ARGV[from], tonumber(ARGV[from + 4])
    if not shard.loads[tenant] then
      tenants[#tenants + 1] = tenant
      shard.loads[tenant] = true
    end
    from = from + 5 + 2 * items
    for item = from - 2 * items, from - 2, 2 do
      local entry = ARGV[item]
      if entry ~= '' then
        local key, field = bucket_key(prefix, entry), entry:sub(13, 36)
        local bucket = buckets[key]
        if not bucket then
          bucket = { fields = {}, items = {}, writes = {} }
          buckets[key] = bucket
        end
        local n = #bucket.fields + 1
        bucket.fields[n], bucket.items[n], shard.buckets[item] = field, item, bucket
      end
    end
  end
  local rates = call('HMGET', prefix .. ':rate', unpack(tenants))
  local loads = call('HMGET', prefix .. ':load', '', unpack(tenants))
  shard.entry = tonumber(loads[1] or '0')
  for i, tenant in ipairs(tenants) do
    shard.rates[tenant], shard.loads[tenant] = rates[i], load_of(loads[i + 1])
  end
  for key, bucket in pairs(buckets) do
    for i, record in ipairs(call('HMGET', key, unpack(bucket.fields))) do
      if record then shard.known[bucket.items[i]] = true end
    end
  end
  return shard
end

-- Adds the job to its box, and to what is written once a call.
local function enqueue(prefix, shard, tenant, item)
  local entry = ARGV[item]
  local channel, writes = entry:sub(38, 38), shard.buckets[item].writes
  local box = tenant .. '/' .. channel
  shard.entry = next_entry(shard.entry)
  local id = entry_id(shard.entry)
  call('XADD', prefix .. ':box:' .. box, id, 'p', entry)
  shard.ready[box] = true
  local n = #writes
  writes[n + 1] = entry:sub(13, 36)
  writes[n + 2] = tenant .. ' ' .. channel .. (entry:sub(40, 40) == 'q' and 'q' or 'p') .. '0 ' .. id
end

for k = 1, #KEYS do
  local prefix, number, groups = KEYS[k], ARGV[at], tonumber(ARGV[at + 1])
  at = at + 2
  local shard, windows, loaded = read_shard(prefix, groups), {}, {}

  for _ = 1, groups do
    local tenant, limit, items = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 4])
    local jobs_max, bytes_max = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
    at = at + 5
    local window_key, is_counted, load = prefix .. ':rate:' .. tenant, limit >= 0, shard.loads[tenant]
    local window = { total = limit }
    if is_counted then
      windows[tenant] = windows[tenant] or open_window(window_key, shard.rates[tenant])
      window = windows[tenant]
    end

    for item = at, at + 2 * items - 2, 2 do
      local entry, idem = ARGV[item], ARGV[item + 1]
      local answer
      if shard.known[item] then
        answer = 'a' .. math.max(0, limit - window.total)
      elseif is_counted and window.total >= limit then
        answer = 'l0 ' .. seconds_until_room(window, window_key)
      else
        if is_counted then window.total, window.here, window.changed = window.total + 1, window.here + 1, true end
        local remaining = limit - window.total
        local fingerprint, idem_key, known
        if idem ~= '' then
          local space = idem:find(' ', 1, true)
          fingerprint, idem_key = idem:sub(1, space - 1), prefix .. ':idem:' .. tenant .. ':' .. idem:sub(space + 1)
          known = call('GET', idem_key)
        end
        local bytes = entry == '' and 0 or payload_bytes(entry)
        if entry == '' then
          answer = 'n' .. remaining
        elseif known then
          answer = known:sub(38) == fingerprint and 'r' .. remaining .. ' ' .. known:sub(1, 36) or 'c' .. remaining
        elseif jobs_max >= 0 and load.jobs + 1 > jobs_max then
          answer = 'q' .. remaining .. ' jobs'
        elseif bytes_max >= 0 and load.bytes + bytes > bytes_max then
          answer = 'q' .. remaining .. ' bytes'
        else
          answer = 'a' .. remaining
          enqueue(prefix, shard, tenant, item)
          load.jobs, load.bytes, loaded[tenant] = load.jobs + 1, load.bytes + bytes, true
          if idem_key then call('SET', idem_key, entry:sub(1, 36) .. ' ' .. fingerprint, 'PX', idem_ttl) end
        end
      end
      out[#out + 1] = answer
    end
    at = at + 2 * items
  end

  for key, bucket in pairs(shard.all_buckets) do
    if #bucket.writes > 0 then call('HSET', key, unpack(bucket.writes)) end
  end
  local rates, loads, ready = {}, {}, {}
  for tenant, window in pairs(windows) do
    if window.changed then
      rates[#rates + 1] = tenant
      rates[#rates + 1] = window.first .. ' ' .. window.total .. ' ' .. window.slice .. ' ' .. window.here
    end
  end
  for tenant in pairs(loaded) do
    loads[#loads + 1] = tenant
    loads[#loads + 1] = string.format('%.0f %.0f', shard.loads[tenant].jobs, shard.loads[tenant].bytes)
  end
  for box in pairs(shard.ready) do ready[#ready + 1] = box end
  if #rates > 0 then call('HSET', prefix .. ':rate', unpack(rates)) end
  if #loads > 0 then call('HSET', prefix .. ':load', '', string.format('%.0f', shard.entry), unpack(loads)) end
  if #ready > 0 and call('SADD', prefix .. ':ready', unpack(ready)) > 0 then call('PUBLISH', 'wb:mail', number) end
end
return out
