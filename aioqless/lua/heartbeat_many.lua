-- heartbeat_many: keep the locks of all that a worker runs alive; a lost one leaves its neighbours alone.
--
-- @arg     worker   string
-- @arg     now      time
-- @batch   jid:any_jid fence:string?
-- @flags   allow-oom
-- @returns list                   when each lock now expires, or a refusal
-- @raises  NOJOB BADSTATE LOCKLOST

return each(function(jid, fence) return json.number(locks.renew(jid, worker, fence, now, nil)) end)
