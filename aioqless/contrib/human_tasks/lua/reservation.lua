-- reservation: the job that a person's session has reserved in a queue.
--
-- @key     queue
-- @arg     worker   string        the person's session
-- @arg     now      time
-- @flags   no-writes
-- @returns json                   {job: null if none or its time is over, skipped: 0, now}

local job = reservations.find_current(queue, worker, now)
return reservations.view(job and job.jid or '', worker, 0, now)
