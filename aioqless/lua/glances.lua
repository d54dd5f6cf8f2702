-- glances: summaries of jobs, for lists.
--
-- @rest    jids     string
-- @flags   no-writes
-- @returns json                   [{jid, klass, state, queue, worker, priority, retries, remaining,
--                                 expires, tags, time, due, group, message, failed, failed_by,
--                                 data, size}] of the jobs that exist; of complete ones
--                                 {last_queue, last_worker, ran}, in seconds. Messages of more than
--                                 1,000 bytes are cut in the middle; data of more than 2,000
--                                 bytes is null

local jobs = {}
for _, jid in ipairs(jids) do jobs[#jobs + 1] = summaries.job(jid) end
return json.list(jobs)
