-- pause: let nobody pop from these queues.
--
-- @keys    queues
-- @flags   allow-oom
-- @returns nothing

for _, queue in ipairs(queues) do redis.call('SADD', keys.paused(), queue) end
