-- decline: release a job without a handler in the worker, as if it had not been popped.
--
-- It uses no retry, and its pop leaves the statistics and the rate limits. Once workers have
-- declined it for `timeout` seconds without a run in between, it fails.
--
-- @arg     jid      any_jid
-- @arg     worker   text          must hold the lock
-- @arg     now      time
-- @arg     delay    seconds       until it may be popped again; a job that expires is back earlier
-- @arg     timeout  seconds       since a worker first declined it
-- @arg     group    name          the failure group
-- @arg     message  text
-- @option  fence    string        must be that of the run
-- @flags   allow-oom
-- @role    worker
-- @durable
-- @returns text                   the new state: `scheduled`, `waiting` or `failed`
-- @raises  NOJOB BADSTATE LOCKLOST

local job = record.require_held(jid, worker, fence)
local since = math.min(release.read_declined_since(job) or now, now)  -- the clock may be set back
if now - since >= timeout then
  failing.fail(job, group, message, worker, now)
  return 'failed'
end
release.undo_pop(job, now)
local state = release.decline(job, since, now, delay)
stats.flush()
return state
