-- put: put (enqueue) a new job, or move an existing one to this queue.
--
-- @key     queue    new_queue
-- @arg     jid      jid
-- @arg     klass    name
-- @arg     data     data
-- @arg     now      time
-- @arg     delay    seconds?
-- @option  priority priority      negative runs sooner; otherwise the job's, or 0
-- @option  tags     tags          otherwise the job's, or none
-- @option  retries  count         otherwise the job's, or 5
-- @option  depends  jids          jobs to wait for; unknown and complete ones count as done
-- @option  context  object        texts by name that travel with the job, such as those of a trace;
--                                 otherwise the job's
-- @option  within   seconds       the job expires if it has not started within this time
-- @option  terms    object        uniqueness, concurrency and rate limits (lib/constraints.lua);
--                                 otherwise the job's
-- @option  on_failed string       hold (default), fail or cancel it when a dependency fails
-- @option  worker   string        the caller; another holder of a running job is notified
-- @role    producer
-- @durable
-- @returns text                   the jid, or that of the job that already has the unique key
-- @raises  EXISTS FULL

if on_failed then cascade.check_policy(on_failed) end
max_length.check(queue, jid)
local put = enqueue.put({
  queue = queue, jid = jid, klass = klass, data = data, now = now, delay = delay or 0,
  priority = priority, tags = tags, retries = retries, depends = depends, context = context,
  within = within, worker = worker,
  terms = terms,
})
if on_failed and put == jid then cascade.apply_policy(jid, on_failed, now) end
return put
