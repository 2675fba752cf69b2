-- Hands the recorder of a shard the next batch of the outbox, whose end is fixed before it is handed out.
-- KEYS: the shard's prefix.
-- ARGV: lease token, most rows, most outbox entries, most bytes, ms that a finished job is kept, age in ms from which a
--       bucket may expire, first and last entry of the batch that is in the ledger ("" none), then two values a bucket:
--       its name and how many rows of the batch are its own.
-- Returns false when the lease is not held. Otherwise nothing (an empty list), or: first and last entry, whether there is
--       more behind them, and the rows, a text an entry.

local prefix, token = KEYS[1], ARGV[1]
local rows_max, entries_max, bytes_max = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
if not holds_lease(prefix, 'recorder', token) then return false end

local outbox, mark_key = prefix .. ':outbox', prefix .. ':mark'
local mark = redis.call('GET', mark_key)

-- A repeated call finds another mark, or none, and removes nothing.
if mark and mark == ARGV[7] .. ' ' .. ARGV[8] then
  local ms, seq = ARGV[8]:match('^(%d+)-(%d+)$')
  redis.call('XTRIM', outbox, 'MINID', '=', ms .. '-' .. string.format('%.0f', seq + 1))
  redis.call('DEL', mark_key)
  mark = false
  local recorded = {}
  for at = 9, #ARGV, 2 do
    redis.call('HINCRBY', prefix .. ':jobs:' .. ARGV[at], 'r', ARGV[at + 1])
    recorded[#recorded + 1] = ARGV[at]
  end
  for i = 1, #recorded, 1000 do
    redis.call('RPUSH', prefix .. ':closing', unpack(recorded, i, math.min(i + 999, #recorded)))
  end
end

-- A bucket that is not complete comes again with its next row.
local function expire_complete_buckets(older_than)
  local closing, done = prefix .. ':closing', 0
  for _, bucket in ipairs(redis.call('LRANGE', closing, 0, 255)) do
    if tonumber(bucket, 16) * 16 > older_than then break end
    local key = prefix .. ':jobs:' .. bucket
    local recorded = redis.call('HGET', key, 'r')
    if recorded and tonumber(recorded) == redis.call('HLEN', key) - 1 then
      redis.call('PEXPIRE', key, ARGV[5])
    end
    done = done + 1
  end
  if done > 0 then redis.call('LTRIM', closing, done, -1) end
end
expire_complete_buckets(now_ms() - tonumber(ARGV[6]))

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
      rows, bytes = rows + tonumber(entry[2][2]), bytes + #entry[2][4]
      full = #entries > 0 and (rows > rows_max or bytes > bytes_max)
      if full then break end
      entries[#entries + 1] = entry
      from = '(' .. entry[1]
    end
    if #read < step then break end
  end
  if #entries > 0 then redis.call('SET', mark_key, entries[1][1] .. ' ' .. entries[#entries][1]) end
end
if #entries == 0 then return {} end

local texts = {}
for i, entry in ipairs(entries) do texts[i] = entry[2][4] end
local more = redis.call('XLEN', outbox) > #entries
return { entries[1][1], entries[#entries][1], more and 1 or 0, texts }
