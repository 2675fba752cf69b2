-- Adds what somebody else says about jobs: at most one event a job and type (clicked: a job, type and result).
-- KEYS: the prefix of each shard in the call.
-- ARGV: for each shard how many items, and eight values an item: tenant, job id, event type, result, recipient to
--       suppress ("" none), reason, the job's record as the ledger has it ("" not asked yet), and whether to hold what
--       comes before the job has ended (1).
-- Returns recorded | duplicate | unknown | early for each item.

local out, at = {}, 1

local function has_event(record, type, result)
  if type ~= 'c' then return record:find('\n' .. type .. '%d') ~= nil end
  -- An empty result is left out of its line, and the space before it.
  for known in record:gmatch('\nc%d+ ?([^\n]*)') do
    if known == result then return true end
  end
  return false
end

for k = 1, #KEYS do
  local prefix, items, rows = KEYS[k], tonumber(ARGV[at]), {}
  local clock = event_clock(prefix)
  at = at + 1
  for _ = 1, items do
    local tenant, job, type, result = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
    local bucket, field = bucket_key(prefix, job), bucket_field(job)
    local stored = redis.call('HGET', bucket, field)
    local record = stored or ARGV[at + 6]
    local owner, channel, status = record:match('^(%S+) (%a)(%a)')
    if owner ~= tenant then
      out[#out + 1] = 'unknown'
    elseif has_event(record, type, result) then
      out[#out + 1] = 'duplicate'
    elseif ARGV[at + 7] == '1' and (status == 'p' or status == 'q' or status == 'r') then
      out[#out + 1] = 'early'
    else
      local id = clock.next()
      local line = '\n' .. type .. id
      if result ~= '' then line = line .. ' ' .. result end
      redis.call('HSET', bucket, field, record .. line)
      -- A job that comes back from the ledger is complete but for this event.
      if stored then redis.call('HINCRBY', bucket, 'r', -1) end
      redis.call('PERSIST', bucket)
      if ARGV[at + 4] ~= '' then
        redis.call('HSET', prefix .. ':suppressed:' .. tenant, ARGV[at + 4], ARGV[at + 5])
      end
      rows[#rows + 1] = '["' .. tenant .. '","' .. job .. '","' .. channel .. '",' .. id .. ',"' .. type .. '",'
        .. or_empty(result) .. ']'
      out[#out + 1] = 'recorded'
    end
    at = at + 8
  end
  if #rows > 0 then
    redis.call('XADD', prefix .. ':outbox', '*', 'c', #rows, 'r', table.concat(rows, '\n'))
    clock.save()
  end
end
return out
