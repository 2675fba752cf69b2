-- Hands the recorder of a shard the next batch of the outbox, whose end is fixed before it is handed out.
-- KEYS: the shard's prefix.
-- ARGV: lease token, most rows, most outbox entries, ms that a finished job is kept, first and last entry of the batch
--       that is in the ledger ("" none), then two values a bucket: its name and how many rows of the batch are its own.
-- Returns false when the lease is not held. Otherwise nothing (an empty list), or: first and last entry, whether there is
--       more behind them, and the rows, a text an entry.

local prefix, token, rows_max, entries_max = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
if not holds_lease(prefix, 'recorder', token) then return false end

local outbox, mark_key = prefix .. ':outbox', prefix .. ':mark'
local mark = redis.call('GET', mark_key)

-- A repeated call finds another mark, or none, and removes nothing.
if mark and mark == ARGV[5] .. ' ' .. ARGV[6] then
  local ms, seq = ARGV[6]:match('^(%d+)-(%d+)$')
  redis.call('XTRIM', outbox, 'MINID', '=', ms .. '-' .. string.format('%.0f', seq + 1))
  redis.call('DEL', mark_key)
  mark = false
  for at = 7, #ARGV, 2 do
    local bucket = prefix .. ':jobs:' .. ARGV[at]
    if redis.call('HINCRBY', bucket, 'n', '-' .. ARGV[at + 1]) <= 0 then redis.call('PEXPIRE', bucket, ARGV[4]) end
  end
end

local entries
if mark then
  local first, last = mark:match('^(%S+) (%S+)$')
  entries = redis.call('XRANGE', outbox, first, last)
else
  local read, rows = redis.call('XRANGE', outbox, '-', '+', 'COUNT', entries_max), 0
  entries = {}
  for _, entry in ipairs(read) do
    rows = rows + tonumber(entry[2][2])
    if #entries > 0 and rows > rows_max then break end
    entries[#entries + 1] = entry
  end
  if #entries > 0 then redis.call('SET', mark_key, entries[1][1] .. ' ' .. entries[#entries][1]) end
end
if #entries == 0 then return {} end

local texts = {}
for i, entry in ipairs(entries) do texts[i] = entry[2][4] end
local more = redis.call('XLEN', outbox) > #entries
return { entries[1][1], entries[#entries][1], more and 1 or 0, texts }
