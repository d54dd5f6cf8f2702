-- charge: correct what the start of a run costs of a rate limit.
--
-- @arg     jid      any_jid
-- @arg     worker   text          must hold the lock
-- @arg     now      time
-- @arg     key      name          of a limit of the job, one with a cost
-- @arg     used     seconds       what the run has used; may be more than the limit
-- @option  fence    string        must be that of the run
-- @flags   allow-oom
-- @role    worker people
-- @durable
-- @returns count                  1 if the start still counts, else 0
-- @raises  NOJOB BADSTATE LOCKLOST

local job = record.require_held(jid, worker, fence)
return admission.charge(job, key, used, now)
