-- free_limits: a run has lost its job, perhaps to another client, which knows no limits. They no
-- longer count the job, unless it runs elsewhere.
--
-- @arg     jid      any_jid
-- @arg     constraints object     the job's, as its run got them
-- @arg     now      time
-- @flags   allow-oom
-- @role    worker
-- @returns nothing

local job = record.read(jid)
if not job or job.state ~= 'running' then
  admission.release({jid = jid, state = 'running', constraints = constraints}, now)
end
