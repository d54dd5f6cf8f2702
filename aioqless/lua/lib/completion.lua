-- completion: complete a run; the job ends, or moves on to another queue.

local left, ended = {}, {}

-- Complete one job. `done` has the checked arguments of the command `complete`. Return the job's
-- new state. completion.flush writes what the completions of a call have in common.
function completion.complete(done)
  if not done.next and done.delay then
    errors.bad_argument('delay', done.delay, 'cannot be used without next')
  end
  if not done.next and done.depends then
    errors.bad_argument('depends', nil, 'cannot be used without next')
  end
  if done.next and done.result then
    errors.bad_argument('result', nil, 'cannot be used with next')
  end
  local result = done.result and results.parse(done.result)
  if done.depends then dependency.check_not_itself(done.jid, done.depends) end
  local job = record.require_held(done.jid, done.worker, done.fence,
    done.next and record.read or record.read_running)
  if job.queue ~= done.queue then errors.bad_state(job, 'the job runs in another queue') end

  history.append(job.jid, job, done.now, 'done')
  stats.add('run', job.queue, done.now, done.now - (job.time or done.now))
  events.publish_tracked('completed', job.jid)
  if done.data then record.set_fields(job.jid, 'data', done.data) end
  if job.terms then limits.release(job, done.now) end
  if job.grace or job.scheduled then record.delete_fields(job.jid, 'grace', 'scheduled') end
  if done.next then return completion.advance(job, done) end
  if result then results.store(job, result) end
  return completion.finish(job, done.now)
end

-- @seldom
function completion.advance(job, done)
  queue_sets.remove(job.queue, job.jid)
  redis.call('ZREM', keys.worker_jobs(job.worker), job.jid)
  events.publish({event = 'advanced', jid = job.jid, queue = job.queue, to = done.next})
  history.append_put(job.jid, job, done.now, done.next)
  queue_sets.register_queue(done.next, done.now)
  dependency.link(job.jid, done.depends or {})
  record.delete_fields(job.jid, 'x-lost', 'x-declined')
  local state = enqueue.add(job.jid, done.next, job.priority, done.delay or 0, done.now, true)
  if archive.is_on() then
    archive.append(job, 'advance', done.now, {to = done.next, state = state})
  end
  if done.depends and #done.depends > 0 then
    record.set_fields(job.jid, 'x-after', json.texts(done.depends))
    record.delete_fields(job.jid, 'x-on-failed')
  end
  completion.write(job, done.now, state, done.next)
  return state
end

function completion.finish(job, now)
  events.publish_completed(job.jid, job.queue)
  if archive.is_on() then
    archive.append(job, 'complete', now, {state = 'complete'})
    completion.write(job, now, 'complete', '', 'x-archived', record.format_time(now))
  else
    completion.write(job, now, 'complete', '')
  end
  if job.terms then constraints.release(job) end
  left[job.queue] = left[job.queue] or {}
  table.insert(left[job.queue], job.jid)
  ended[#ended + 1] = retention.compute_completed_at(job, now)
  ended[#ended + 1] = job.jid
  return 'complete'
end

function completion.write(job, now, state, queue, ...)
  record.set_fields(job.jid, 'state', state, 'queue', queue, 'worker', '', 'expires', '0',
    'failure', '{}', 'remaining', json.number(job.retries), 'time', record.format_time(now), ...)
end

-- Remove the completed jobs from their queues and worker, add them to the set of completed jobs,
-- and release their dependents. There are at most 1,000 per call, so they can be unpacked.
function completion.flush(worker, now)
  for queue, jids in pairs(left) do
    queue_sets.remove(queue, unpack(jids))
    redis.call('ZREM', keys.worker_jobs(worker), unpack(jids))
    dependency.release_dependents(jids, now)
  end
  if #ended > 0 then redis.call('ZADD', keys.completed(), unpack(ended)) end
  stats.flush(now)
end
