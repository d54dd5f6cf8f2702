-- requeue: put a job that must exist; otherwise as put.
--
-- @key     queue    new_queue
-- @arg     jid      string
-- @arg     klass    name
-- @arg     data     data
-- @arg     now      time
-- @arg     delay    seconds?
-- @option  priority priority
-- @option  tags     tags
-- @option  retries  count
-- @option  depends  jids
-- @option  context  object
-- @option  within   seconds
-- @option  terms    object
-- @option  worker   string
-- @role    producer
-- @durable
-- @returns text                   the jid
-- @raises  NOJOB EXISTS FULL

record.require(jid)
max_length.check(queue, jid)
return enqueue.put({
  queue = queue, jid = jid, klass = klass, data = data, now = now, delay = delay or 0,
  priority = priority, tags = tags, retries = retries, depends = depends, context = context,
  within = within, worker = worker,
  terms = terms,
})
