-- put: a new job, or one that exists and moves here.
--
-- @key     queue    new_queue
-- @arg     jid      jid
-- @arg     klass    name
-- @arg     data     data
-- @arg     now      time
-- @arg     delay    seconds
-- @option  priority priority      negative runs sooner; default: the job's, else 0
-- @option  tags     tags          default: the job's, else none
-- @option  retries  count         default: the job's, else 5
-- @option  depends  jids          jobs to wait for; unknown and complete ones count as done
-- @option  context  object        texts by name that travel with the job, such as those of a trace; default: the job's
-- @option  within   seconds       how long from now it may begin; a worker fails it that gets it later; default: any time
-- @option  terms    object        what it is alone in, and how many of its kind may run: as constraints.lua has them; default: the job's
-- @option  worker   string        the caller: the holder of a running job is told unless it is the caller
-- @returns text                   the jid; where the terms say that there is such a job already, that one's
-- @raises  EXISTS FULL

max_length.check(queue, jid)
return enqueue.put({
  queue = queue, jid = jid, klass = klass, data = data, now = now, delay = delay,
  priority = priority, tags = tags, retries = retries, depends = depends, context = context, within = within, worker = worker,
  terms = terms,
})
