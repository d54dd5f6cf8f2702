-- failing: failure groups, and what a failed job keeps of its failure.

local NEAR = 1000

-- What a job's failure record says.  `when` is floored, as live clients do.
function failing.failure(group, message, worker, now)
  return '{"group":' .. cjson.encode(group) .. ',"message":' .. cjson.encode(message) .. ',"when":'
    .. string.format('%.0f', math.floor(now)) .. ',"worker":' .. cjson.encode(worker) .. '}'
end

-- Fail a job, whatever its state.  `exhausted`: it ran out of retries or locks; then live clients publish the two events in the other
-- order, and name no worker in the history.
function failing.fail(job, group, message, worker, now, exhausted)
  if exhausted then events.tracked('failed', job.jid) end
  events.log({event = 'failed', jid = job.jid, worker = worker, group = group, message = message})
  if not exhausted then events.tracked('failed', job.jid) end
  history.append(job.jid, job, now, 'failed', cjson.encode({worker = not exhausted and worker or nil, group = group}))
  if job.queue ~= '' then
    stats.count(job.queue, now, 'failures', 1)
    stats.count(job.queue, now, 'failed', 1)
  end
  place.leave(job.queue, job.jid)
  if job.terms then limits.leave(job, now) end
  if job.worker ~= '' then redis.call('ZREM', keys.held(job.worker), job.jid) end
  record.clear(job.jid, 'grace', 'scheduled')
  failing.store(job, group, message, worker, now)
end

-- Fail a job that has no retries left, in `group` for `message` where its worker gave them.
function failing.exhaust(job, group, message, worker, now)
  local why = group and message or 'Job exhausted retries in queue "' .. job.queue .. '"'
  failing.fail(job, group or 'failed-retries-' .. job.queue, why, worker, now, true)
end

-- Write the failure, and file the job under its group.
function failing.store(job, group, message, worker, now)
  if archive.is_on() then
    archive.append(job, 'fail', now, {state = 'failed', group = group, message = message})
    record.set(job.jid, 'x-archived', job.time_text or '')
  end
  record.set(job.jid, 'state', 'failed', 'worker', '', 'expires', '',
    'failure', failing.failure(group, message, worker, now))
  redis.call('SADD', keys.failures(), group)
  redis.call('LPUSH', keys.group(group), job.jid)
  retention.note_failed(job, now)
  if redis.call('HEXISTS', keys.job(job.jid), 'x-cascade') == 1 then
    cascade.note('failed', job.jid, keys.dependents(job.jid))
    redis.call('PUBLISH', keys.retimed(), '')
  end
end

-- A failed job leaves its group. The record stays with the job until it completes.
function failing.leave(job)
  local group = groups.of(job.failure)
  if group then
    redis.call('LREM', keys.group(group), failing.is_old(group, job.jid) and -1 or 1, job.jid)
    failing.forget_if_empty(group)
  end
  failing.uncount(job)
end

-- In a long list a job is searched from the end that it is near to.
function failing.is_old(group, jid)
  return redis.call('LLEN', keys.group(group)) > NEAR and redis.call('LPOS', keys.group(group), jid, 'RANK', -1, 'MAXLEN', NEAR)
end

-- A job is failed no longer: it isn't to go with age, and the day and queue it failed in have one less, if they are still kept.
function failing.uncount(job)
  redis.call('ZREM', keys.outdated(), job.jid)
  local when = tonumber(json.parsed_object(job.failure).when)
  if when and stats.counted(job.queue, when, 'failed') > 0 then stats.count(job.queue, when, 'failed', -1) end
end

function failing.forget_if_empty(group)
  if redis.call('EXISTS', keys.group(group)) == 0 then redis.call('SREM', keys.failures(), group) end
end
