-- Quarantines data that only its reader finds unreadable.
-- KEYS: the shard's prefix.
-- ARGV: why it cannot be read, its text, its kind ("entry" of a tenant queue, "row" of the outbox) and its place: the
--       tenant queue and the entry's id, or the batch.
-- Returns 1.

local prefix, why, text = KEYS[1], ARGV[1], ARGV[2]
if ARGV[3] == 'entry' then
  quarantine_entry(prefix, {}, ARGV[4], ARGV[5], why, text)
else
  quarantine(prefix, {}, ARGV[3], ARGV[4], why, text)
end
return 1
