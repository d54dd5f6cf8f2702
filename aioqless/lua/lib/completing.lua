-- completing: a run is done; the job ends, or goes on in another queue.

local left, ended = {}, {}

-- `done` has the arguments of the command complete, checked.  Returns the job's new state.
-- What all completions of a call have in common is written once, by completing.flush.
function completing.complete(done)
  if not done.next and done.delay then refusal.argument('delay', done.delay, 'cannot be used without next') end
  if not done.next and done.depends then refusal.argument('depends', nil, 'cannot be used without next') end
  if done.next and done.result then refusal.argument('result', nil, 'cannot be used with next') end
  local result = done.result and results.parse(done.result)
  if done.depends then dependency.check(done.jid, done.depends) end
  local job = record.held(done.jid, done.worker, done.fence, done.next and record.read or record.read_running)
  if job.queue ~= done.queue then refusal.state(job, 'the job runs in another queue') end

  history.append(job.jid, job, done.now, 'done')
  stats.add('run', job.queue, done.now, done.now - (job.time or done.now))
  events.tracked('completed', job.jid)
  if done.data then record.set(job.jid, 'data', done.data) end
  if job.terms then limits.leave(job, done.now) end
  if job.grace or job.scheduled then record.clear(job.jid, 'grace', 'scheduled') end
  if done.next then return completing.advance(job, done) end
  if result then results.keep(job, result) end
  return completing.finish(job, done.now)
end

-- @seldom
function completing.advance(job, done)
  place.leave(job.queue, job.jid)
  redis.call('ZREM', keys.held(job.worker), job.jid)
  events.log({event = 'advanced', jid = job.jid, queue = job.queue, to = done.next})
  history.append_put(job.jid, job, done.now, done.next)
  place.register(done.next, done.now)
  dependency.link(job.jid, done.depends or {})
  record.clear(job.jid, 'x-lost')
  local state = putting.place(job.jid, done.next, job.priority, done.delay or 0, done.now, true)
  if archive.is_on() then archive.append(job, 'advance', done.now, {to = done.next, state = state}) end
  if done.depends and #done.depends > 0 then
    record.set(job.jid, 'x-after', json.texts(done.depends))
    record.clear(job.jid, 'x-on-failed')
  end
  completing.write(job, done.now, state, done.next)
  return state
end

function completing.finish(job, now)
  events.log_completed(job.jid, job.queue)
  if archive.is_on() then
    archive.append(job, 'complete', now, {state = 'complete'})
    completing.write(job, now, 'complete', '', 'x-archived', record.time(now))
  else
    completing.write(job, now, 'complete', '')
  end
  if job.terms then clauses.end_of(job) end
  left[job.queue] = left[job.queue] or {}
  table.insert(left[job.queue], job.jid)
  ended[#ended + 1] = retention.completed_at(job, now)
  ended[#ended + 1] = job.jid
  return 'complete'
end

function completing.write(job, now, state, queue, ...)
  record.set(job.jid, 'state', state, 'queue', queue, 'worker', '', 'expires', '0', 'failure', '{}', 'remaining', json.number(job.retries),
    'time', record.time(now), ...)
end

-- Those that ended leave their queues and their worker, and are among the completed; who waited for them may run. At most 1,000 to a
-- call, so they can be unpacked.
function completing.flush(worker, now)
  for queue, jids in pairs(left) do
    place.leave(queue, unpack(jids))
    redis.call('ZREM', keys.held(worker), unpack(jids))
    dependency.release_each(jids, now)
  end
  if #ended > 0 then redis.call('ZADD', keys.completed(), unpack(ended)) end
  stats.flush(now)
end
