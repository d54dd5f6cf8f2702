-- steps: what the runs of a job have stored for later runs.
--
-- @arg     jid      any_jid
-- @flags   no-writes
-- @returns texts                  kind and name, and the entry, of each

local mark = redis.pcall('HGET', keys.job(jid), 'x-steps')
if type(mark) == 'table' then record.check_type(jid) end
return mark == '1' and redis.call('HGETALL', keys.steps(jid)) or {}
