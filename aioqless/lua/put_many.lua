-- put_many: put (enqueue) many jobs into one queue; a refused one doesn't affect the others.
--
-- @key     queue    new_queue
-- @arg     now      time
-- @batch   jid:jid klass:name data:data delay:seconds?
-- @options enqueue
-- @option  existing string        any value: leave a job that exists alone, and return ''
-- @role    producer
-- @durable
-- @returns answers                the jid, as of put, or an error for each
-- @raises  EXISTS FULL NOJOB

-- A microsecond apart, so that they are popped in this order: equal scores would be ordered by jid.
local before = 0
return each(function(jid, klass, data, delay, options)
  local at = now + before * 0.000001
  before = before + 1
  if existing and redis.call('EXISTS', keys.job(jid)) == 1 then return '' end
  return enqueue.put({
    queue = queue, jid = jid, klass = klass, data = data, now = at, delay = delay or 0,
  }, options)
end)
