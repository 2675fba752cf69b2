-- Remembers the provider's message ids of jobs that were handed over.
--
-- KEYS[n]   hash of references (references.ts)
--
-- ARGV[1]   ms that they are kept
-- then for each hash:
--   1       number of its pairs
-- and for each pair:
--   1       digest
--   2       job
--
-- Returns 1.

local kept_ms, at = ARGV[1], 2
for _, key in ipairs(KEYS) do
  local pairs_here = tonumber(ARGV[at])
  redis.call('HSET', key, unpack(ARGV, at + 1, at + 2 * pairs_here))
  redis.call('PEXPIRE', key, kept_ms)
  at = at + 1 + 2 * pairs_here
end
return 1
