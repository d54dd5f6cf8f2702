-- length: how many jobs a queue has that wait, run or are scheduled.
--
-- @key     queue
-- @flags   no-writes
-- @returns number

return tostring(redis.call('ZCARD', keys.waiting(queue)) + redis.call('ZCARD', keys.locks(queue)) + redis.call('ZCARD', keys.scheduled(queue)))
