-- states: the states of jobs.
--
-- @rest    jids     string
-- @flags   no-writes
-- @role    producer
-- @returns texts                  the state of each; empty for a job that doesn't exist

local states = {}
for i, jid in ipairs(jids) do
  -- A jid that names another key of a job is no job.
  local state = redis.pcall('HGET', keys.job(jid), 'state')
  states[i] = type(state) == 'string' and state or ''
end
return states
