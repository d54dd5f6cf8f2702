-- pop: lock the next jobs of a queue for a worker, those with an expired lock first.
--
-- @key     queue
-- @arg     worker   name
-- @arg     count    count         at most 1,000
-- @arg     now      time
-- @flags   allow-oom
-- @role    worker
-- @present view.encode_locked(answer, worker)
-- @returns json                   the jobs

local jids = pop.take(queue, {worker = worker}, count, now)
if #jids < count then notes.find_stored(now) end
stats.flush()
return jids
