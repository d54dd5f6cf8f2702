-- queue_names: the known queues by name alone, by when each was first seen.
--
-- @arg     offset   count?
-- @arg     count    count?        default and at most 1,000
-- @flags   no-writes
-- @returns list

count = math.min(count or 1000, 1000)
if count == 0 then return {} end
return redis.call('ZRANGE', keys.queues(), offset or 0, (offset or 0) + count - 1)
