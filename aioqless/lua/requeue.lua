-- requeue: put a job that must exist, and keep its steps; otherwise as put.
--
-- @key     queue    new_queue
-- @arg     jid      string
-- @arg     klass    name
-- @arg     data     data
-- @arg     now      time
-- @arg     delay    seconds?
-- @options enqueue
-- @option  data_keys object       what its constraints take from the data (key_changes.lua)
-- @role    producer
-- @durable
-- @returns text                   the jid
-- @raises  NOJOB EXISTS FULL

record.require(jid)
return enqueue.put({
  queue = queue, jid = jid, klass = klass, data = data, now = now, delay = delay or 0,
  again = true, data_keys = data_keys,
}, options)
