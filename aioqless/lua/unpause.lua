-- unpause: resume paused queues.
--
-- @keys    queues
-- @flags   allow-oom
-- @role    dashboard
-- @durable
-- @returns nothing

for _, queue in ipairs(queues) do
  redis.call('SREM', keys.paused(), queue)
  events.publish_ready(queue)
end
