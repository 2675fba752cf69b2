-- Remembers the provider's message ids of jobs that were handed over.
-- KEYS: hashes of references (references.ts).
-- ARGV: ms that they are kept, then for each hash the number of its pairs, and the pairs: digest, job.

local at = 2
for _, key in ipairs(KEYS) do
  local pairs_here = tonumber(ARGV[at])
  redis.call('HSET', key, unpack(ARGV, at + 1, at + 2 * pairs_here))
  redis.call('PEXPIRE', key, ARGV[1])
  at = at + 1 + 2 * pairs_here
end
return 1
