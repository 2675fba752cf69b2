-- Counts requests in their tenants' rate windows and queues jobs.
-- KEYS: the prefix of each shard in the call.
-- ARGV: repeated (1 when an earlier try of this call may have landed), window in slices, slice ms, idempotency ttl ms,
--       age from which a bucket may be closing (ms), the first job in the call ("" none), how long a try of the call may
--       be on its way (ms), then for each shard: its number and how many tenants; for each
--       tenant: its id, requests per minute (-1: these were counted before) and how many items; for each item: the box
--       entry ("" only counts) and "<fingerprint> <idempotency key>" ("" none).
-- Returns a text an item: a letter, the requests that remain (0 where none are counted), and what the letter calls for:
--       a accepted, n only counted, c idempotency conflict, "r<remaining> <job id>" replayed,
--       "l<remaining> <seconds until there is room>" limited.
-- Refused before its first line when Redis is out of memory (no allow-oom): an accept lands whole or not at all.

local call = redis.call
local repeated, slices, slice_ms, idem_ttl = ARGV[1] == '1', tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local now = now_ms()
local young_from, slice_now = now - tonumber(ARGV[5]), math.floor(now / slice_ms)
local out, at = {}, 8

-- A try that comes behind a repeat of itself (a connection was lost, what it held was not) has been answered for: its
-- jobs are queued, perhaps delivered by now.
if ARGV[6] ~= '' then
  local repeat_key = KEYS[1] .. ':repeated:' .. ARGV[6]
  if repeated then
    call('SET', repeat_key, 1, 'PX', ARGV[7])
  elseif call('EXISTS', repeat_key) == 1 then
    return out
  end
end

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
  if not state then return { first = slice_now, total = 0, slice = slice_now, here = 0 } end
  local first, total, slice, here = state:match('^(%d+) (%d+) (%d+) (%d+)$')
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

for k = 1, #KEYS do
  local prefix, shard, tenants = KEYS[k], ARGV[at], tonumber(ARGV[at + 1])
  at = at + 2
  local rate = prefix .. ':rate'
  local windows, ready, is_ready, buckets, old_buckets = {}, {}, {}, {}, {}

  for _ = 1, tenants do
    local tenant, limit, items = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
    at = at + 3
    local window_key, is_counted = rate .. ':' .. tenant, limit >= 0
    local window = is_counted and open_window(window_key, call('HGET', rate, tenant)) or { total = limit }

    for item = at, at + 2 * items - 2, 2 do
      local entry, idem = ARGV[item], ARGV[item + 1]
      local job = entry:sub(1, 36)
      local answer
      if entry ~= '' and repeated and call('HEXISTS', bucket_key(prefix, job), bucket_field(job)) == 1 then
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
        if entry == '' then
          answer = 'n' .. remaining
        elseif known then
          answer = known:sub(38) == fingerprint and 'r' .. remaining .. ' ' .. known:sub(1, 36) or 'c' .. remaining
        else
          answer = 'a' .. remaining
          local channel = entry:sub(38, 38)
          local box = tenant .. '/' .. channel
          local id = call('XADD', prefix .. ':box:' .. box, '*', 'p', entry)
          if idem_key then call('SET', idem_key, job .. ' ' .. fingerprint, 'PX', idem_ttl) end
          local bucket = bucket_key(prefix, job)
          local fields = buckets[bucket]
          if not fields then
            fields = {}
            buckets[bucket] = fields
            if bucket_ms(job) < young_from then old_buckets[#old_buckets + 1] = bucket end
          end
          fields[#fields + 1] = bucket_field(job)
          fields[#fields + 1] = tenant .. ' ' .. channel .. (entry:sub(40, 40) == 'q' and 'q' or 'p') .. '0 ' .. id
          if not is_ready[box] then
            is_ready[box] = true
            ready[#ready + 1] = box
          end
        end
      end
      out[#out + 1] = answer
    end
    at = at + 2 * items
    if window.changed then
      windows[#windows + 1] = tenant
      windows[#windows + 1] = window.first .. ' ' .. window.total .. ' ' .. window.slice .. ' ' .. window.here
    end
  end

  for bucket, fields in pairs(buckets) do call('HSET', bucket, unpack(fields)) end
  for _, bucket in ipairs(old_buckets) do call('PERSIST', bucket) end
  if #windows > 0 then call('HSET', rate, unpack(windows)) end
  if #ready > 0 and call('SADD', prefix .. ':ready', unpack(ready)) > 0 then call('PUBLISH', 'wb:mail', shard) end
end
return out
