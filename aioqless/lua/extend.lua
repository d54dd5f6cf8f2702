-- extend: a person needs longer; the reservation lasts for so many seconds from now.
--
-- @arg     jid      string
-- @arg     worker   name          must hold the lock
-- @arg     limit    interval      at most a day
-- @arg     now      time
-- @option  fence    string        must be that of the run
-- @flags   allow-oom
-- @returns number                 when the reservation now ends
-- @raises  NOJOB BADSTATE LOCKLOST

people.check_limit(limit)
local job = record.held(jid, worker, fence)
if job.grace then record.clear(jid, 'grace') end
people.bind(jid, job.queue, worker, job.fence or '0', now + limit, now)
return json.number(now + limit)
