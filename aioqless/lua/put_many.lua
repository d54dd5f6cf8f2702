-- put_many: many jobs into one queue; a refused one leaves its neighbours alone.
--
-- @key     queue    new_queue
-- @arg     now      time
-- @batch   jid:jid klass:name data:data delay:seconds? priority:priority? tags:tags? retries:count? depends:jids?
-- @returns list                   a jid or a refusal for each

return each(function(jid, klass, data, delay, priority, tags, retries, depends)
  return putting.put({
    queue = queue, jid = jid, klass = klass, data = data, now = now, delay = delay or 0,
    priority = priority, tags = tags, retries = retries, depends = depends,
  })
end)
