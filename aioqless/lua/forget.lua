-- forget: remove queues from the list of known ones. Their jobs stay; the next put adds them again.
--
-- @keys    queues
-- @flags   allow-oom
-- @role    dashboard
-- @returns nothing

for _, queue in ipairs(queues) do redis.call('ZREM', keys.queues(), queue) end
