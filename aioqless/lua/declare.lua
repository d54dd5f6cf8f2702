-- declare: recurring jobs as the code has them, told by each worker that starts.
--
-- @when    interval
-- @arg     queue    name
-- @arg     jid      jid
-- @arg     klass    name
-- @arg     data     data
-- @arg     now      time
-- @arg     next     seconds       when the first instance is due, if there is none of this schedule yet
-- @arg     interval interval
-- @option  retries  count         default 5
-- @option  backlog  count         as in recur
-- @option  terms    object        as in recur
-- @option  anywhere string        the queue is a guess: one that exists stays where it is
-- @returns text                   made, retimed, or kept: there was one of this schedule
-- @when    cron
-- @arg     queue    name
-- @arg     jid      jid
-- @arg     klass    name
-- @arg     data     data
-- @arg     now      time
-- @arg     next     seconds
-- @arg     expression name        of cron
-- @arg     timezone name
-- @option  retries  count
-- @option  backlog  count
-- @option  terms    object
-- @option  anywhere string
-- @returns text                   as above
-- @when    begin                  before the first of these
-- @arg     id       name          a new one, for contents of Redis that have none yet
-- @returns text                   the generation, for tick
-- @when    off
-- @rest    jids     string        of those the code could declare and doesn't
-- @returns list                   the jids of those that were declared before, and are taken off

if word == 'begin' then return declarations.begin(id) end
if word == 'off' then return recurring_jobs.remove_undeclared(jids) end
return recurring_jobs.put({
  queue = queue, jid = jid, klass = klass, data = data, now = now, interval = interval, cron = expression, timezone = timezone, next = next,
  retries = retries, backlog = backlog, terms = terms, anywhere = anywhere, declared = true,
})
