-- Puts away what only its reader finds that it cannot read.
-- KEYS: the shard's prefix.
-- ARGV: what it is, where, why it cannot be read, its text, and where it is a box's entry the box and the entry's id.
-- Returns 1.

local prefix = KEYS[1]
quarantine(prefix, {}, ARGV[1], ARGV[2], ARGV[3], ARGV[4])
if ARGV[6] then redis.call('XDEL', prefix .. ':box:' .. ARGV[5], ARGV[6]) end
return 1
