-- cancel: delete jobs. Those that depend on them must be among them.
--
-- @rest    jids     any_jid
-- @flags   allow-oom
-- @returns list                   the jids cancelled; unknown and complete jobs are passed over
-- @raises  HELD

return cancellation.cancel(jids)
