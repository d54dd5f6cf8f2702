-- delays: for how long the next job of each queue has been ready to run, and what may keep it.
--
-- @keys    queues
-- @arg     now      time
-- @flags   no-writes
-- @role    worker
-- @returns json                   [{lag, running, limit, rate, starts, next_start, klass,
--                                 declined}]: the queue's concurrency limit (0: none) and the
--                                 running jobs that count towards it, its rate limit (0 in 0
--                                 seconds: none), the starts that count towards it and when the
--                                 next one may be; the klass of the next job that workers without
--                                 a handler have declined, and since when (0: none)

local delays = {}
for i, queue in ipairs(queues) do
  delays[i] = listing.describe_delay(queue, now)
end
return json.list(delays)
