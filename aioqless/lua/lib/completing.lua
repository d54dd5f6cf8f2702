-- completing: a run is done; the job ends, or goes on in another queue.

-- `done` has the arguments of the command complete, checked.  Returns the job's new state.
function completing.complete(done)
  if not done.next and done.delay then refusal.argument('delay', done.delay, 'cannot be used without next') end
  if not done.next and done.depends then refusal.argument('depends', nil, 'cannot be used without next') end
  if done.depends then dependency.check(done.jid, done.depends) end
  local job = record.held(done.jid, done.worker, done.fence)
  if job.queue ~= done.queue then refusal.state(job, 'the job runs in another queue') end

  history.append(job.jid, job, done.now, 'done')
  if done.data then record.set(job.jid, 'data', done.data) end
  stats.add('run', job.queue, done.now, done.now - (job.time or done.now))
  place.leave(job.queue, job.jid)
  redis.call('ZREM', keys.held(job.worker), job.jid)
  events.tracked('completed', job.jid)
  if job.grace or job.scheduled then record.clear(job.jid, 'grace', 'scheduled') end
  record.set(job.jid, 'worker', '', 'expires', 0, 'failure', '{}', 'remaining', job.retries, 'time', record.time(done.now))
  if done.next then return completing.advance(job, done) end
  return completing.finish(job, done.now)
end

function completing.advance(job, done)
  events.log({event = 'advanced', jid = job.jid, queue = job.queue, to = done.next})
  history.append(job.jid, job, done.now, 'put', cjson.encode({q = done.next}))
  place.register(done.next, done.now)
  record.set(job.jid, 'queue', done.next)
  dependency.link(job.jid, done.depends or {})
  return putting.place(job.jid, done.next, job.priority, done.delay or 0, done.now, true)
end

function completing.finish(job, now)
  events.log({event = 'completed', jid = job.jid, queue = job.queue})
  record.set(job.jid, 'state', 'complete', 'queue', '')
  redis.call('ZADD', keys.completed(), now, job.jid)
  dependency.release_all(job.jid, now)
  return 'complete'
end
