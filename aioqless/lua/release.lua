-- release: return a running job unfinished to its former place in the queue. It uses no retry.
--
-- @arg     jid      any_jid
-- @arg     worker   text          must hold the lock
-- @arg     now      time
-- @arg     delay    seconds?      until it may run again
-- @option  data     data          replaces the job's data
-- @option  fence    string        must be that of the run
-- @option  waiting  jids          park it until one of these waits of its steps is over
-- @flags   allow-oom
-- @role    worker people
-- @returns text                   the new state
-- @raises  NOJOB BADSTATE LOCKLOST

local job = record.require_held(jid, worker, fence)
if data then record.set_fields(jid, 'data', data) end
if waiting then return waits.park(job, waiting, now) end
return release.put_back(job, now, delay)
