-- states: which states jobs are in.
--
-- @rest    jids     string
-- @flags   no-writes
-- @returns list                   the state of each; empty for a job that doesn't exist

local states = {}
for i, jid in ipairs(jids) do states[i] = redis.call('HGET', keys.job(jid), 'state') or '' end
return states
