-- steps: what the runs of a job have stored for later runs.
--
-- @arg     jid      any_jid
-- @flags   no-writes
-- @returns texts                  kind and name, and the entry, of each

return redis.call('HEXISTS', keys.job(jid), 'x-steps') == 1
  and redis.call('HGETALL', keys.steps(jid)) or {}
