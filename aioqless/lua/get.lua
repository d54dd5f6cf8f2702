-- get: one job.
--
-- @arg     jid      any_jid
-- @flags   no-writes
-- @returns json                   the job; nil when there is none

return view.encode(jid)
