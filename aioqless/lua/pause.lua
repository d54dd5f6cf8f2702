-- pause: pause queues. Running jobs are not affected.
--
-- @keys    queues
-- @flags   allow-oom
-- @role    dashboard
-- @durable
-- @returns nothing

for _, queue in ipairs(queues) do redis.call('SADD', keys.paused(), queue) end
