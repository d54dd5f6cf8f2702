-- extend: set a new time limit for a reservation, counted from now.
--
-- @arg     jid      string
-- @arg     worker   name          must hold the lock
-- @arg     limit    interval      seconds, at most a day
-- @arg     now      time
-- @option  fence    string        must be that of the run
-- @flags   allow-oom
-- @role    people
-- @returns number                 when the reservation expires
-- @raises  NOJOB BADSTATE LOCKLOST

reservations.check_limit(limit)
local job = record.require_held(jid, worker, fence)
if job.grace then record.delete_fields(jid, 'grace') end
reservations.assign(jid, job.queue, worker, job.fence or '0', now + limit, now)
return json.number(now + limit)
