-- recur: templates that put an instance of themselves whenever an interval has passed, or at the times of a cron expression.
--
-- @when    on
-- @arg     queue    name
-- @arg     jid      jid
-- @arg     klass    name
-- @arg     data     data
-- @arg     now      time
-- @literal interval
-- @arg     interval interval      seconds from one instance to the next
-- @arg     offset   seconds       until the first
-- @option  priority priority
-- @option  tags     tags
-- @option  retries  count         default 5
-- @option  backlog  count         how many missed instances to make up for, 0: all; absent: one for all that were missed
-- @option  terms    object        of its instances; one whose key is had when it is due is left out
-- @returns text                   the jid
-- @when    cron                   instances are made by `tick`, which callers call
-- @arg     queue    name
-- @arg     jid      jid
-- @arg     klass    name
-- @arg     data     data
-- @arg     now      time
-- @arg     expression name         of cron
-- @arg     timezone name
-- @arg     next     seconds       when its first instance is due, as the caller reckoned it
-- @option  priority priority
-- @option  tags     tags
-- @option  retries  count         default 5
-- @option  backlog  count         as above
-- @option  terms    object
-- @returns text                   the jid
-- @when    off
-- @arg     jid      string
-- @returns number                 1
-- @when    get
-- @arg     jid      string
-- @returns json                   the template; nil when there is none
-- @when    update
-- @arg     jid      string
-- @rest    pairs    text          names and values of: priority retries data klass queue backlog;
--                                 interval, or cron timezone next
-- @returns number                 1
-- @when    tag
-- @arg     jid      string
-- @rest    tags     name
-- @returns list                   all tags of the template
-- @when    untag
-- @arg     jid      string
-- @rest    tags     string
-- @returns list                   all tags of the template
-- @when    pause                  no more instances, whoever pops
-- @arg     jid      string
-- @arg     now      time
-- @returns number                 1
-- @when    resume                 with the clock started again
-- @arg     jid      string
-- @arg     now      time
-- @arg     next     seconds?      with a cron expression: when the next is due
-- @returns number                 1
-- @when    run                    an instance at once; the clock goes on as it was
-- @arg     jid      string
-- @arg     now      time
-- @returns text                   the instance's jid
-- @raises  NOJOB BADSTATE

if word == 'on' or word == 'cron' then
  recurring_jobs.put({
    queue = queue, jid = jid, klass = klass, data = data, now = now, interval = interval, cron = expression, timezone = timezone,
    next = next or now + offset, priority = priority, tags = tags, retries = retries, backlog = backlog, terms = terms,
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
