-- states: which states jobs are in.
--
-- @rest    jids     string
-- @flags   no-writes
-- @returns list                   the state of each; empty for a job that doesn't exist

local states = {}
for i, jid in ipairs(jids) do
  local state = redis.pcall('HGET', keys.job(jid), 'state') -- what is called like another key of a job's is no job
  states[i] = type(state) == 'string' and state or ''
end
return states
