-- heartbeat_many: renew the locks of a worker's jobs; a lost one doesn't affect the others.
--
-- @arg     worker   string
-- @arg     now      time
-- @batch   jid:any_jid fence:string?
-- @flags   allow-oom
-- @role    worker
-- @returns answers                when each lock expires, or an error
-- @raises  NOJOB BADSTATE LOCKLOST
-- @usual   clock.is_used clock.now json.format_number json.number layout.batch locks.compute_expiry
-- @usual   locks.renew locks.store presence.has record.read record.require_held record.set_fields

return each(function(jid, fence) return json.number(locks.renew(jid, worker, fence, now, nil)) end)
