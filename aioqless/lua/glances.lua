-- glances: what a list shows of each job.
--
-- @rest    jids     string
-- @flags   no-writes
-- @returns json                   [{jid, klass, state, queue, worker, priority, retries, remaining, expires, tags, time, due, group, message,
--                                 failed, data, size}] of those that exist. Of a message of more than 1,000 bytes the middle is left out; data of more than 2,000 are nil

local jobs = {}
for _, jid in ipairs(jids) do jobs[#jobs + 1] = summaries.job(jid) end
return json.list(jobs)
