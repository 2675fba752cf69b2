-- Quarantines data that a script cannot recognise as unreadable, but its reader does.
--
-- KEYS[1]   the shard's prefix
--
-- ARGV[1]   why it cannot be read
-- ARGV[2]   its text
-- ARGV[3]   its kind: "entry" of a tenant queue, or "row" of the outbox
-- ARGV[4]   the tenant queue, or the batch
-- ARGV[5]   the entry's id (entry)
--
-- Returns 1.

local prefix, why, text, kind, place, id = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
if kind == 'entry' then
  quarantine_entry(prefix, {}, place, id, why, text)
else
  quarantine(prefix, {}, kind, place, why, text)
end
return 1
