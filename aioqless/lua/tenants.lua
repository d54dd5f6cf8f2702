-- tenants: the tenants of a queue with fair turns that have waiting or running jobs.
--
-- They are ordered by priority, then by whose next turn comes first. Running jobs are counted among
-- the first 1,000 of the queue. A page may have fewer: tenants without jobs are left out.
--
-- @key     queue
-- @arg     now      time
-- @arg     offset   count?
-- @arg     count    count?        at most 1,000; 100 unless given
-- @flags   no-writes
-- @role    worker
-- @returns json                   [{key, priority, waiting, running, lag}]

return tenants.list(queue, offset or 0,
  math.max(1, math.min(count or 100, constants.MAX_BATCH)), now)
