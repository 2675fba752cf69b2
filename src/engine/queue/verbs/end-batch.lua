-- Keeps the refusals in the answer to a batch under an idempotency key, as long as the key.
--
-- KEYS[1]   the shard's prefix
--
-- ARGV[1]   tenant
-- ARGV[2]   base job id
-- ARGV[3]   the refusals, under gzip
-- ARGV[4]   ms that they are kept
--
-- Returns 1.

local prefix, refused, kept_ms = KEYS[1], ARGV[3], tonumber(ARGV[4])
redis.call('SET', prefix .. ':batch:' .. ARGV[2] .. ':refused', refused, 'PX', kept_ms)
note_claims(prefix, ARGV[1], #refused, kept_ms)
return 1
