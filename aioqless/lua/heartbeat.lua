-- heartbeat: keep a running job's lock alive.
--
-- @arg     jid      string
-- @arg     worker   string        must hold the lock
-- @arg     now      time
-- @arg     data     data?         replaces the job's data when given
-- @option  fence    string        must be that of the run
-- @flags   allow-oom
-- @returns number                 when the lock now expires
-- @raises  NOJOB BADSTATE LOCKLOST

return json.number(locks.renew(jid, worker, fence, now, data))
