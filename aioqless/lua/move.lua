-- move: put a job that waits or is scheduled into another queue; it stays due when it was.
--
-- @key     queue    new_queue
-- @arg     jid      string
-- @arg     now      time
-- @role    producer
-- @durable
-- @returns count                  1; 0 for a job in that queue, or in another state
-- @raises  FULL

local job = record.read(jid)
if not job or job.queue == queue or job.state ~= 'waiting' and job.state ~= 'scheduled' then
  return '0'
end
local own = job_constraints.read(job.constraints)
local is_ready = held_jobs.find(own, jid) or own.bulk and bulks.find_score(job.queue, jid, own)
local due = not is_ready and redis.call('ZSCORE', keys.scheduled(job.queue), jid)
local stored = redis.call('HMGET', keys.job(jid), 'klass', 'data', 'x-expiry')
enqueue.put({
  queue = queue, jid = jid, klass = stored[1], data = stored[2], now = now,
  delay = due and tonumber(due) - now or 0, again = true,
}, {expires_in = stored[3] and tonumber(stored[3]) - now or nil})
return '1'
