-- heartbeat_many: renew the locks of a worker's jobs; a lost one doesn't affect the others.
--
-- @arg     worker   string
-- @arg     now      time
-- @batch   jid:any_jid fence:string?
-- @flags   allow-oom
-- @role    worker
-- @returns answers                when each lock expires, or an error
-- @raises  NOJOB BADSTATE LOCKLOST

return each(function(jid, fence) return json.number(locks.renew(jid, worker, fence, now, nil)) end)
