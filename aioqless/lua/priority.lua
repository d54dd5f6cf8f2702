-- priority: let a job run sooner or later than others; where it waits, at once.
--
-- @arg     jid      string
-- @arg     priority priority      negative runs sooner
-- @flags   allow-oom
-- @returns number                 the priority
-- @raises  NOJOB

local job = record.existing(jid)
record.set(jid, 'priority', priority)
if job.terms then limits.rank(job, priority) end
local score = job.queue ~= '' and redis.call('ZSCORE', keys.work(job.queue), jid)
if score and score ~= 'inf' then
  redis.call('ZADD', keys.work(job.queue), precedence.score(priority, job.time or 0), jid)
end
return json.number(precedence.turned(priority))
