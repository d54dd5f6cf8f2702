-- reservation: what a person's session has reserved in a queue, if its time isn't over.
--
-- @key     queue
-- @arg     worker   string        the person's session
-- @arg     now      time
-- @flags   no-writes
-- @returns json                   {job: or null, skipped: 0, now}

local job = reservations.find_current(queue, worker, now)
return reservations.view(job and job.jid or '', worker, 0, now)
