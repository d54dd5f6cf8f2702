-- recur: recurring jobs: they put an instance at an interval, or at the times of a cron expression.
--
-- @when    on                     create or replace a recurring job with an interval
-- @arg     queue    name
-- @arg     jid      jid
-- @arg     klass    name
-- @arg     data     data
-- @arg     now      time
-- @literal interval
-- @arg     interval interval      seconds between instances
-- @arg     offset   seconds       until the first
-- @option  priority priority
-- @option  tags     tags
-- @option  retries  count         5 unless given
-- @option  backlog  count         maximum number of missed instances to replay, 0: all; absent:
--                                 missed instances are coalesced into one
-- @option  constraints object        of its instances; one whose unique key is taken is skipped
-- @option  expires_in seconds       an instance expires if it has not started this time
--                                 after it was due
-- @option  ends     seconds       when it ends: no instance is due later
-- @option  max_runs count         it ends after this number of instances
-- @option  jitter   seconds       maximum random delay of each instance
-- @returns text                   the jid
-- @when    cron                   create or replace a recurring job with a cron expression
-- @arg     queue    name
-- @arg     jid      jid
-- @arg     klass    name
-- @arg     data     data
-- @arg     now      time
-- @arg     expression name         the cron expression, whose instances `tick` puts
-- @arg     timezone name
-- @arg     next     seconds       when the first instance is due, as the caller computed it
-- @option  priority priority
-- @option  tags     tags
-- @option  retries  count         5 unless given
-- @option  backlog  count         as above
-- @option  constraints object
-- @option  expires_in seconds
-- @option  ends     seconds
-- @option  max_runs count
-- @option  jitter   seconds
-- @returns text                   the jid
-- @when    off                    cancel a recurring job
-- @arg     jid      string
-- @returns count                  1
-- @when    get                    return a recurring job
-- @arg     jid      string
-- @returns json                   the recurring job; null if there is none
-- @when    update                 change a recurring job
-- @arg     jid      string
-- @rest    pairs    text          names and values of priority, retries, data, klass, queue,
--                                 backlog, expires_in, ends, max_runs, jitter
--                                 (none: without);
--                                 interval, or cron, timezone, next
-- @returns count                  1
-- @when    tag                    add tags to a recurring job
-- @arg     jid      string
-- @rest    tags     name
-- @returns texts                  all tags of the recurring job
-- @when    untag                  remove tags of a recurring job
-- @arg     jid      string
-- @rest    tags     string
-- @returns texts                  all tags of the recurring job
-- @when    pause                  create no more instances
-- @arg     jid      string
-- @arg     now      time
-- @returns count                  1
-- @when    resume                 create instances again, with the schedule restarted
-- @arg     jid      string
-- @arg     now      time
-- @arg     next     seconds?      required with a cron expression: when the next instance is due
-- @returns count                  1
-- @when    run                    put an instance now; the schedule is not affected
-- @arg     jid      string
-- @arg     now      time
-- @returns text                   the instance's jid
-- @role    producer
-- @durable
-- @raises  NOJOB BADSTATE

if word == 'on' or word == 'cron' then
  recurring_jobs.put({
    queue = queue, jid = jid, klass = klass, data = data, now = now, interval = interval,
    cron = expression, timezone = timezone,
    next = next or now + offset, priority = priority, tags = tags, retries = retries,
    backlog = backlog, constraints = constraints, expires_in = expires_in, ends = ends,
    max_runs = max_runs, jitter = jitter,
  })
  return jid
end
if word == 'off' then return recurring_jobs.remove(jid) end
if word == 'get' then return recurring_jobs.view(jid) end
if word == 'update' then return recurring_update.update(jid, pairs) end
if word == 'tag' then return recurring_update.change_tags(jid, tags, true) end
if word == 'untag' then return recurring_update.change_tags(jid, tags, false) end
if word == 'pause' then return recurring_update.pause(jid, now) end
if word == 'resume' then return recurring_update.resume(jid, now, next) end
return recurring_update.run_now(jid, now)
