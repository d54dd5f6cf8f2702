-- length: the number of waiting, running and scheduled jobs of a queue.
--
-- @key     queue
-- @flags   no-writes
-- @role    producer
-- @returns count

return tostring(redis.call('ZCARD', keys.waiting(queue)) + redis.call('ZCARD', keys.locks(queue))
  + redis.call('ZCARD', keys.scheduled(queue)))
