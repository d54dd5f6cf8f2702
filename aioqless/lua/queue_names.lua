-- queue_names: the names of the known queues, by when each was first seen.
--
-- @arg     offset   count?
-- @arg     count    count?        at most 1,000, which is also the default
-- @flags   no-writes
-- @role    producer
-- @returns texts

count = math.min(count or constants.MAX_BATCH, constants.MAX_BATCH)
if count == 0 then return {} end
return redis.call('ZRANGE', keys.queues(), offset or 0, (offset or 0) + count - 1)
