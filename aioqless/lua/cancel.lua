-- cancel: delete jobs. All jobs that depend on them must be in the same call.
--
-- @rest    jids     any_jid
-- @option  actor    name          who cancels, for the archive
-- @flags   allow-oom
-- @role    producer
-- @durable
-- @returns texts                  the jids canceled; unknown and complete jobs are skipped
-- @raises  HELD

return cancellation.cancel(jids, actor)
