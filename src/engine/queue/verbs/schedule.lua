-- Moves a job that waits for the time that it is scheduled for to another time.
--
-- KEYS[1]   the shard's prefix
--
-- ARGV[1]   tenant
-- ARGV[2]   job id
-- ARGV[3]   the new time (Unix time in ms)
-- ARGV[4]   the caller's time
--
-- Returns MOVED, BEGUN (its time has come), ENDED or UNKNOWN (also of another tenant). Safe to repeat.

local prefix, tenant, job, due, caller_ms = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local bucket, field = bucket_key(prefix, job), bucket_field(job)
local record = redis.call('HGET', bucket, field) or ''
local owner, _, status = record_state(record)
if owner ~= tenant then return UNKNOWN end
if not is_unfinished(status) then return ENDED end

local parked = record_due(record) and redis.call('HGET', prefix .. ':parked', job)
local tenant_queue, _, text = read_parked(parked or '')
if not text then return BEGUN end

redis.call('HSET', bucket, field, with_place(record, LATER .. due))
redis.call('HSET', prefix .. ':parked', job, parked_text(tenant_queue, '', with_due(text, due)))
redis.call('ZADD', prefix .. ':later', string.format('%.0f', due_at(prefix, due, caller_ms) or agreed_ms(prefix)), job)
return MOVED
