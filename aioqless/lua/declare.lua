-- declare: create or update the recurring jobs that code declares; each starting worker calls it.
--
-- @when    interval               create or update a recurring job with an interval
-- @arg     queue    name
-- @arg     jid      jid
-- @arg     klass    name
-- @arg     data     data
-- @arg     now      time
-- @arg     next     seconds       when the first instance is due, unless the schedule is unchanged
-- @arg     interval interval
-- @option  priority priority
-- @option  tags     tags
-- @option  retries  count         5 unless given
-- @option  backlog  count         as in recur
-- @option  constraints object        as in recur
-- @option  expires_in seconds       as in recur
-- @option  ends     seconds       when it ends: no instance is due later
-- @option  max_runs count         it ends after this number of instances
-- @option  jitter   seconds       maximum random delay of each instance
-- @returns text                   `made`, `retimed` (its schedule changed) or `kept`
-- @when    cron                   create or update a recurring job with a cron expression
-- @arg     queue    name
-- @arg     jid      jid
-- @arg     klass    name
-- @arg     data     data
-- @arg     now      time
-- @arg     next     seconds
-- @arg     expression name        the cron expression
-- @arg     timezone name
-- @option  priority priority
-- @option  tags     tags
-- @option  retries  count
-- @option  backlog  count
-- @option  constraints object
-- @option  expires_in seconds
-- @option  ends     seconds
-- @option  max_runs count
-- @option  jitter   seconds
-- @returns text                   as above
-- @when    begin                  return the generation; called before the jobs are declared
-- @arg     id       name          an id for the contents of Redis, used if they have none yet
-- @returns text                   the generation, for tick
-- @when    off                    remove recurring jobs that the code no longer declares
-- @rest    jids     string        recurring jobs that the code no longer declares
-- @returns texts                  the jids removed: those that code had declared
-- @role    worker

if word == 'begin' then return declarations.begin(id) end
if word == 'off' then return recurring_jobs.remove_undeclared(jids) end
return recurring_jobs.put({
  queue = queue, jid = jid, klass = klass, data = data, now = now, interval = interval,
  cron = expression, timezone = timezone, next = next,
  priority = priority, tags = tags, retries = retries, backlog = backlog, constraints = constraints,
  expires_in = expires_in, declared = true, ends = ends, max_runs = max_runs, jitter = jitter,
})
