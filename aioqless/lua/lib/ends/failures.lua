-- failures: fail jobs, and maintain failure groups.

local NEAR = 1000

-- A job's failure record. `when` is rounded down, as live clients do.
function failures.encode(group, message, worker, now)
  return '{"group":' .. cjson.encode(group) .. ',"message":' .. cjson.encode(message) .. ',"when":'
    .. string.format('%.0f', math.floor(now)) .. ',"worker":' .. cjson.encode(worker) .. '}'
end

-- Fail a job, whatever its state. `exhausted`: it ran out of retries or locks; then live clients
-- publish the two events in reverse order, and name no worker in the history.
function failures.fail(job, group, message, worker, now, exhausted)
  if exhausted then events.publish_tracked('failed', job.jid) end
  events.publish({
    event = 'failed', jid = job.jid, worker = worker, group = group, message = message,
  })
  if not exhausted then events.publish_tracked('failed', job.jid) end
  history.append(job.jid, job, now, 'failed', cjson.encode({
    worker = not exhausted and worker or nil, group = group,
  }))
  if job.queue ~= '' then
    stats.count(job.queue, now, 'failures', 1)
    stats.count(job.queue, now, 'failed', 1)
  end
  queue_sets.remove(job.queue, job.jid)
  if job.constraints then
    limits.release(job, now)
    local own = job_constraints.read(job.constraints)
    if own.debounce then debounce.hand_over(job.jid, own.unique, now) end
  end
  if job.worker ~= '' then redis.call('ZREM', keys.worker_jobs(job.worker), job.jid) end
  record.delete_fields(job.jid, 'grace', 'scheduled', 'x-declined')
  failures.store(job, group, message, worker, now)
end

-- Fail a job that has no retries left, in `group` for `message` if its worker gave them.
function failures.fail_exhausted(job, group, message, worker, now)
  local why = group and message or 'Job exhausted retries in queue "' .. job.queue .. '"'
  failures.fail(job, group or constants.EXHAUSTED_GROUP .. job.queue, why, worker, now, true)
end

-- Write the failure, and file the job under its group.
function failures.store(job, group, message, worker, now)
  if archive.is_on() then
    archive.append(job, 'fail', now, {state = 'failed', group = group, message = message})
    record.set_fields(job.jid, 'x-archived', job.time_text or '')
  end
  record.set_fields(job.jid, 'state', 'failed', 'worker', '', 'expires', '',
    'failure', failures.encode(group, message, worker, now))
  redis.call('SADD', keys.failures(), group)
  redis.call('LPUSH', keys.group(group), job.jid)
  retention.schedule_failed(job, now)
  local f = redis.call('HMGET', keys.job(job.jid), 'x-cascade', 'x-on-failure', 'klass',
    'x-parent')
  local declared = redis.call('HGET', keys.on_failure(), f[3] or '')
  if f[1] or f[2] or declared then
    branches.react(job, f, declared, group, message, now)
  end
  if f[4] then
    calls.note_end(job.jid, f[4], calls.encode_failure(job.jid, group, message), now)
  end
  local set = job.constraints and members.read_set(job.constraints)
  if set then members.move(set, job.jid, 'failed', now) end
end

-- Remove a failed job from its group. The failure record stays with the job until it completes.
function failures.leave_group(job)
  local group = failures.group_of(job.failure)
  if group then
    redis.call('LREM', keys.group(group), failures.is_near_tail(group, job.jid) and -1 or 1,
      job.jid)
    failures.drop_empty_group(group)
  end
  failures.stop_counting(job)
end

-- Whether a job is found faster from the tail of its group's list.
function failures.is_near_tail(group, jid)
  return redis.call('LLEN', keys.group(group)) > NEAR
    and redis.call('LPOS', keys.group(group), jid, 'RANK', -1, 'MAXLEN', NEAR)
end

-- Undo what counts a job as failed: its expiry, and the counter of the day and queue that it failed
-- in, if still kept.
function failures.stop_counting(job)
  redis.call('ZREM', keys.failed_expiry(), job.jid)
  local when = tonumber(json.parse_object(job.failure).when)
  if when and stats.read_count(job.queue, when, 'failed') > 0 then
    stats.count(job.queue, when, 'failed', -1)
  end
end

function failures.drop_empty_group(group)
  if redis.call('EXISTS', keys.group(group)) == 0 then
    redis.call('SREM', keys.failures(), group)
  end
end

-- The group of a failure record; nil if it can't be read.
function failures.group_of(text)
  local failure = json.parse_object(text)
  local group = failure.group or failure.type
  return (type(group) == 'string' or type(group) == 'number') and json.to_text(group) or nil
end

-- Put a failed job that has left its group into a queue again, or end it if a newer one has its
-- key. The caller registers the queue.
function failures.put_back(job, queue, now)
  if archive.is_on() then archive_backfill.append(job) end
  local newer = job.constraints and debounce.find_successor(job, now)
  if newer then
    cascade.note_retry(job.jid)
    return completion.supersede(job, newer, now)
  end
  local is_held = job.constraints and debounce.replace_older(job, now)
  history.append(job.jid, job, now, 'put', cjson.encode({q = queue}))
  record.delete_fields(job.jid, 'x-lost', 'x-expiry')
  cascade.note_retry(job.jid)
  local state = enqueue.add(job.jid, queue, job.priority, 0, now, is_held, job.constraints)
  record.set_fields(job.jid, 'state', state, 'worker', '', 'expires', 0, 'queue', queue,
    'remaining', job.retries, 'time', record.format_time(now))
  if job.constraints then
    local own = job_constraints.read(job.constraints)
    job_constraints.apply(job.jid, nil, own, job.constraints, now)
    if own.set then members.move(own.set, job.jid, 'open', now) end
  end
end
