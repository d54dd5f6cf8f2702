-- release: the holder hands a running job back, at its former place in the queue and at no cost of a retry.
--
-- @arg     jid      any_jid
-- @arg     worker   text          must hold the lock
-- @arg     now      time
-- @arg     delay    seconds?      not before so many seconds from now
-- @option  fence    string        must be that of the run
-- @flags   allow-oom
-- @returns text                   the new state
-- @raises  NOJOB BADSTATE LOCKLOST

return release.put_back(record.require_held(jid, worker, fence), now, delay)
