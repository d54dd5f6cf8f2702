-- heartbeat_many: renew the locks of a worker's jobs; a lost one doesn't affect the others.
--
-- @arg     worker   string
-- @arg     now      time
-- @batch   jid:any_jid fence:string?
-- @flags   allow-oom
-- @role    worker
-- @returns answers                when each lock expires, or an error
-- @raises  NOJOB BADSTATE LOCKLOST
-- @usual   args.between args.count clock.is_used clock.now config.queue json.format_number
-- @usual   json.number layout.batch locks.compute_expiry locks.renew locks.store presence.has
-- @usual   presence.read record.read record.require_held record.set_fields requests.parse

return each(function(jid, fence) return json.number(locks.renew(jid, worker, fence, now, nil)) end)
