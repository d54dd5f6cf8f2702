-- put_flow: put the jobs of a workflow into queues of their own: all of them, or none.
--
-- A job comes after those of the batch that it depends on.
--
-- @arg     now      time
-- @batch   queue:new_queue jid:jid klass:name data:data delay:seconds?
-- @options enqueue
-- @role    producer
-- @durable
-- @returns texts                  the jids
-- @raises  EXISTS FULL

local flow = {}
local ahead = {}  -- the number of this call's earlier jobs by queue, not put yet
local checked = each(function(queue, jid, klass, data, delay, options)
  if options.if_dependency_fails then cascade.check_policy(options.if_dependency_fails) end
  dependency.check_not_itself(jid, options.depends or {})
  if options.constraints then job_constraints.require_no_conflict(options.constraints, jid, now) end
  if redis.call('SCARD', keys.dependencies(jid)) > constants.MAX_BATCH then
    errors.bad_argument('jid', jid, 'has too many dependencies to be put again')
  end
  max_length.check(queue, jid, ahead[queue])
  ahead[queue] = (ahead[queue] or 0) + 1
  local put = {
    queue = queue, jid = jid, klass = klass, data = data, now = now + #flow * 0.000001,
    delay = delay or 0,
  }
  flow[#flow + 1] = {put = put, options = options}
  return jid
end)
for _, answer in ipairs(checked) do
  if type(answer) == 'table' then error(answer) end
end
for _, job in ipairs(flow) do
  enqueue.write(job.put, job.options)
  cascade.set_policy(job.put.jid, job.options.if_dependency_fails)
end
cascade.run_deferred(now)
return checked
