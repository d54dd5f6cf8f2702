-- release: return a running job unfinished to its former place in the queue. It uses no retry.
--
-- @arg     jid      any_jid
-- @arg     worker   text          must hold the lock
-- @arg     now      time
-- @arg     delay    seconds?      until it may run again
-- @option  fence    string        must be that of the run
-- @flags   allow-oom
-- @role    worker people
-- @returns text                   the new state
-- @raises  NOJOB BADSTATE LOCKLOST

return release.put_back(record.require_held(jid, worker, fence), now, delay)
