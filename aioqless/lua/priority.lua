-- priority: change a job's priority; a waiting job moves at once.
--
-- @arg     jid      string
-- @arg     priority priority      negative runs sooner
-- @flags   allow-oom
-- @role    producer
-- @durable
-- @returns number                 the priority
-- @raises  NOJOB

local job = record.require(jid)
record.set_fields(jid, 'priority', priority)
if job.constraints then held_jobs.change_priority(job, priority) end
local score = job.queue ~= '' and redis.call('ZSCORE', keys.waiting(job.queue), jid)
local changed
if score and score ~= 'inf' then
  changed = job.constraints and turns.change_priority(job, priority)
    or priority_score.compute(priority, job.time or 0)
  redis.call('ZADD', keys.waiting(job.queue), changed, jid)
end
if job.constraints then bulks.change_priority(job, priority, changed) end
return json.number(priority_score.negate(priority))
