-- get: one job.
--
-- @arg     jid      string
-- @flags   no-writes
-- @returns json                   the job; nil when there is none

return view.job(jid)
