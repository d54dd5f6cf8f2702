-- failure_reactions: put the jobs that a failure asks for.

-- React to a failure of a job: its `jid`, its `queue` and `time` as they were before, the `group`
-- and the `message`, its mark `cascade`, its klass, its `own` job for failures, and the one that
-- its klass has `declared`.
function failure_reactions.react(failure, now)
  local jid, key = failure.jid, keys.job(failure.jid)
  local f = redis.call('HMGET', key, 'jid', 'x-failures', 'x-cause', 'x-context')
  local number = (tonumber(string.match(f[2] or '', '^%d+')) or 0) + 1
  if f[1] then
    record.set_fields(jid, 'x-failures', string.format('%d ', number) .. (failure.time or ''))
  end
  if failure.cascade then policies.note_failure(jid, failure.cascade) end
  if not (failure.own or failure.declared) or f[3]
    or failure.group == failure.queue .. '-dependency-failed' then
    return
  end
  local cause = {
    text = failure_jobs.encode_failure(jid, failure.klass, failure.group, failure.message),
    number = number, context = f[4] or nil,
  }
  if failure.own then failure_reactions.put(failure.own, jid .. '-failure-', cause, now) end
  if failure.declared then
    failure_reactions.put(string.match(failure.declared, '^%S+ (.*)$'), jid .. '-handler-failure-',
      cause, now + 0.000001)
  end
end

-- Put a branch, whatever the length of its queue, by default with the context of the failed job. If
-- its unique key is taken, nothing is put. A number may be in use if the failed job was deleted and
-- put again.
function failure_reactions.put(text, prefix, cause, now)
  local put, options = job_json.parse(text)
  local number = cause.number
  while redis.call('EXISTS', keys.job(string.format('%s%d', prefix, number))) == 1 do
    number = number * 2
  end
  put.jid, put.now = string.format('%s%d', prefix, number), now
  options.context = options.context or cause.context
  if enqueue.write(put, options) == put.jid then
    record.set_fields(put.jid, 'x-cause', cause.text)
  end
end
