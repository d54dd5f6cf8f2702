-- failure_jobs: the jobs that a failure is to put: the failed job's own (the option on_failure),
-- and its handler's, which workers declare by klass.

-- Set the branch of a job.
function failure_jobs.set(jid, text, now)
  record.set_fields(jid, 'x-on-failure', text)
  failure_jobs.note_use(now)
end

-- Note that failures matter, also those of other clients: from now on they are looked for.
function failure_jobs.note_use(now)
  redis.call('HSETNX', keys.on_failure(), '', string.format('%.6f', now))
end

-- Declare the branch of all jobs of a klass; it counts for failures from the first declaration on.
function failure_jobs.declare(klass, text, now)
  local since = string.match(redis.call('HGET', keys.on_failure(), klass) or '', '^%S+')
  redis.call('HSET', keys.on_failure(), klass, (since or string.format('%.6f', now)) .. ' ' .. text)
  failure_jobs.note_use(now)
end

-- A failure as others get it, with the failed job's data.
function failure_jobs.encode_failure(jid, klass, group, message)
  return '{"jid":' .. cjson.encode(jid) .. ',"klass":' .. cjson.encode(klass or '')
    .. ',"group":' .. cjson.encode(group) .. ',"message":' .. cjson.encode(message) .. ',"data":'
    .. cjson.encode(redis.call('HGET', keys.job(jid), 'data') or 'null') .. '}'
end
