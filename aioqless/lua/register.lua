-- register: note which queues a worker serves. It does so when it starts, and then now and again.
--
-- @arg     worker   name
-- @arg     now      time
-- @rest    queues   name          names and patterns
-- @flags   allow-oom
-- @role    worker
-- @returns nothing

redis.call('HSET', keys.subscriptions(), worker, json.texts(queues))
redis.call('ZADD', keys.workers(), now, worker)
