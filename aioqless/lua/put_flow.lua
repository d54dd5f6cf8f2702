-- put_flow: put the jobs of a workflow into queues of their own: all of them, or none.
--
-- A job comes after those of the batch that it depends on. None is put if a unique key is taken, or
-- a jid for which `if_exists` says `keep`.
--
-- @arg     now      time
-- @batch   queue:new_queue jid:jid klass:name data:data delay:seconds?
-- @options enqueue
-- @role    producer
-- @durable
-- @returns texts                  the jids; or an empty text and the jid of the job that is there
-- @raises  EXISTS FULL NOJOB

local flow, reply = flows.read(each, now)
for _, job in ipairs(flow) do
  enqueue.write(job.put, job.options)
  policies.set(job.put.jid, job.options.if_dependency_fails, now)
end
return reply
