-- pop: lock the next jobs of a queue for a worker; those whose lock ran out go first.
--
-- @key     queue
-- @arg     worker   name
-- @arg     count    count         at most 1,000 are handed out
-- @arg     now      time
-- @flags   allow-oom
-- @present view.held(answer, worker)
-- @returns json                   the jobs

dependency.upkeep(now)
local jids = handout.pop(queue, worker, count, now)
stats.flush(now)
return jids
