-- forget: take queues off the list of those known. Their jobs stay, and the next put makes them known again.
--
-- @keys    queues
-- @flags   allow-oom
-- @returns nothing

for _, queue in ipairs(queues) do redis.call('ZREM', keys.queues(), queue) end
