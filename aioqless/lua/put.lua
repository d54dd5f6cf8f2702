-- put: put (enqueue) a new job, or move an existing one to this queue.
--
-- @key     queue    new_queue
-- @arg     jid      jid
-- @arg     klass    name
-- @arg     data     data
-- @arg     now      time
-- @arg     delay    seconds?
-- @options enqueue
-- @option  worker   string        the caller; another holder of a running job is notified
-- @role    producer
-- @durable
-- @returns text                   the jid, or that of the job that already has the unique key
-- @raises  EXISTS FULL NOJOB

return enqueue.put({
  queue = queue, jid = jid, klass = klass, data = data, now = now, delay = delay or 0,
  worker = worker,
}, options)
