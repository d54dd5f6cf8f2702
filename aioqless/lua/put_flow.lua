-- put_flow: jobs that depend on each other, into queues of their own: all of them, or none when one is refused.
-- A job comes behind those of them that it depends on.
--
-- @arg     now      time
-- @batch   queue:new_queue jid:jid klass:name data:data delay:seconds? priority:priority? tags:tags? retries:count? depends:jids?
-- @batch   context:object? within:seconds? on_failed:name? terms:object?
-- @returns list                   the jids
-- @raises  EXISTS

local flow = {}
local checked = each(function(queue, jid, klass, data, delay, priority, tags, retries, depends, context, within, on_failed, terms)
  cascade.check(on_failed)
  dependency.check(jid, depends or {})
  if terms then clauses.must_be_free(terms, jid, now) end
  if redis.call('SCARD', keys.dependencies(jid)) > 1000 then refusal.argument('jid', jid, 'has too many dependencies to be put anew') end
  flow[#flow + 1] = {
    queue = queue, jid = jid, klass = klass, data = data, now = now + #flow * 0.000001, delay = delay or 0,
    priority = priority, tags = tags, retries = retries, depends = depends, context = context, within = within, on_failed = on_failed,
    terms = terms,
  }
  return jid
end)
for _, answer in ipairs(checked) do
  if type(answer) == 'table' then error(answer) end
end
for _, put in ipairs(flow) do
  putting.put(put)
  cascade.choose(put.jid, put.on_failed)
end
cascade.upkeep(now)
return checked
