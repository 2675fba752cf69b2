-- Counts requests in their tenants' rate windows and queues jobs.
-- KEYS: the prefix of each shard in the call.
-- ARGV: repeated (1 when an earlier try of this call may have landed), window in slices, slice ms, idempotency ttl ms,
--       then for each shard: its number, how many items, and nine values an item:
--       tenant, requests per minute, job id ("" only counts), channel, status, recipient, payload, idempotency key,
--       fingerprint.
-- Returns four values an item: accepted | replayed | conflict | limited | admitted, job id, remaining, reset seconds.
-- Refused before its first line when Redis is out of memory (no allow-oom): an accept lands whole or not at all.

local repeated, slices, slice_ms, idem_ttl = ARGV[1] == '1', tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local now = now_ms()
local out, at = {}, 5

-- A tenant's window, read once a call: counts of whole slices, the oldest counted whole, so that no 60 seconds ever
-- hold more than the limit.
local function open_window(key)
  local slice = math.floor(now / slice_ms)
  local state = redis.call('HMGET', key, 'b', 't', slice)
  local first, total, here = tonumber(state[1] or slice), tonumber(state[2] or '0'), tonumber(state[3] or '0')
  if slice < first - slices then -- the clock was set back: a new window rather than one that never moves
    redis.call('DEL', key)
    first, total, here = slice, 0, 0
  elseif slice < first then
    slice, here = first, tonumber(redis.call('HGET', key, first) or '0')
  end
  local expired = {}
  for old = first, math.min(slice - slices, first + 2 * slices) - 1 do expired[#expired + 1] = old end
  if #expired > 0 then
    for _, count in ipairs(redis.call('HMGET', key, unpack(expired))) do total = total - tonumber(count or '0') end
    redis.call('HDEL', key, unpack(expired))
    first = slice - slices
  end
  return { key = key, slice = slice, first = first, total = total, here = here, changed = #expired > 0 }
end

local function seconds_until_room(window)
  local every = {}
  for slice = window.first, window.slice do every[#every + 1] = slice end
  local counts = redis.call('HMGET', window.key, unpack(every))
  local oldest = window.slice
  for i, slice in ipairs(every) do
    if tonumber(counts[i] or '0') > 0 then oldest = slice break end
  end
  return math.max(1, math.ceil(((oldest + slices + 1) * slice_ms - now) / 1000))
end

for k = 1, #KEYS do
  local prefix, shard, items = KEYS[k], ARGV[at], tonumber(ARGV[at + 1])
  at = at + 2
  local windows, buckets, counts, ready, is_ready = {}, {}, {}, {}, {}

  for _ = 1, items do
    local tenant, limit, job, idem = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2], ARGV[at + 7]
    local window = windows[tenant]
    if not window then
      window = open_window(prefix .. ':rate:' .. tenant)
      windows[tenant] = window
    end
    local idem_key = idem ~= '' and prefix .. ':idem:' .. tenant .. ':' .. idem
    local kind
    if job ~= '' and repeated and redis.call('HEXISTS', bucket_key(prefix, job), bucket_field(job)) == 1 then
      kind = 'accepted'
    elseif window.total >= limit then
      kind = 'limited'
    else
      window.total, window.here, window.changed = window.total + 1, window.here + 1, true
      local known = idem_key and redis.call('GET', idem_key)
      if job == '' then
        kind = 'admitted'
      elseif known then
        kind = known:sub(38) == ARGV[at + 8] and 'replayed' or 'conflict'
        job = known:sub(1, 36)
      else
        kind = 'accepted'
        local channel, status, recipient = ARGV[at + 3], ARGV[at + 4], ARGV[at + 5]
        local box = tenant .. '/' .. channel
        local entry = redis.call('XADD', prefix .. ':box:' .. box, '*', 'p',
          job .. ' ' .. channel .. '0 ' .. recipient .. '\n' .. ARGV[at + 6])
        if idem_key then redis.call('SET', idem_key, job .. ' ' .. ARGV[at + 8], 'PX', idem_ttl) end
        local bucket = bucket_key(prefix, job)
        local fields = buckets[bucket]
        if not fields then
          fields = {}
          buckets[bucket], counts[bucket] = fields, 0
        end
        fields[#fields + 1] = bucket_field(job)
        fields[#fields + 1] = tenant .. ' ' .. channel .. status .. '0 ' .. entry
        counts[bucket] = counts[bucket] + 1
        if not is_ready[box] then
          is_ready[box] = true
          ready[#ready + 1] = box
        end
      end
    end
    out[#out + 1] = kind
    out[#out + 1] = job
    out[#out + 1] = math.max(0, limit - window.total)
    out[#out + 1] = kind == 'limited' and seconds_until_room(window) or math.floor(slices * slice_ms / 1000)
    at = at + 9
  end

  for bucket, fields in pairs(buckets) do
    redis.call('HSET', bucket, unpack(fields))
    keep_bucket(bucket, counts[bucket])
  end
  for _, window in pairs(windows) do
    if window.changed then
      redis.call('HSET', window.key, 'b', window.first, 't', window.total, window.slice, window.here)
      redis.call('PEXPIRE', window.key, (slices + 2) * slice_ms)
    end
  end
  if #ready > 0 and redis.call('SADD', prefix .. ':ready', unpack(ready)) > 0 then
    redis.call('PUBLISH', 'wb:mail', shard)
  end
end
return out
