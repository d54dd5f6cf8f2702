-- get: one job.
--
-- @arg     jid      any_jid
-- @flags   no-writes
-- @role    producer
-- @returns json                   the job; null if there is none

return view.encode(jid, 1)
