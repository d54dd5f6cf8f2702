-- unpause: let these queues be popped from again.
--
-- @keys    queues
-- @flags   allow-oom
-- @returns nothing

for _, queue in ipairs(queues) do
  redis.call('SREM', keys.paused(), queue)
  events.publish_ready(queue)
end
