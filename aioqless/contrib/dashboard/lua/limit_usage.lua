-- limit_usage: how full the limits by key are that scheduled and running jobs of a queue have.
--
-- @key     queue
-- @arg     now      time
-- @flags   no-writes
-- @returns json                   {keys: [{key, jid, held, running, limit, rate, used, until,
--                                 paused_until}], total, read, jobs}: at most 20 keys, the number
--                                 of keys, and how many of these jobs were read. `jid` is a job
--                                 that has the key; `held` counts the jobs that it holds back.
--                                 Limits, rates and times are left out where there is none

return limit_usage.list(queue, now)
