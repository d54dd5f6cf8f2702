-- completion: complete a run; the job ends, or moves on to another queue.

-- What all commands take that complete a run (`@options completion`):
--
-- @option  next      name         the next queue
-- @option  delay     seconds      with next only
-- @option  depends   jids         with next only
-- @option  result    text         the result to keep: TTL in seconds, a space, JSON; not with next
-- @option  durable   string       its runs may have stored steps, which are deleted, or another job
--                                 has called it: 1, or 1, a space and its result as JSON
-- @option  data_keys object       what its constraints take from the data (key_changes.lua)

-- Seconds for which a child keeps a result that only its parent is to get: until the note is done,
-- which takes long only if no client is there to do it.
local RESULT_OF_CHILD = 30 * constants.DAY

-- What the completions of a call have in common: the worker, the time, their event; and what
-- completion.flush writes: the jids that have ended, when each has if that isn't now, and all by
-- queue.
function completion.begin(worker, now)
  return {
    worker = worker, now = now, time = record.format_time(now),
    event = history.encode(now, 'done'), jids = {}, at = {}, by_queue = {},
  }
end

-- Complete one job, which runs in a queue. `fence` is that of its run, `data` replaces its data,
-- each nil if not given. `ended` is that of completion.begin. Return the job's new state.
function completion.complete(ended, jid, queue, fence, data, options)
  local now = ended.now
  if next(options) then completion.check_options(jid, options) end
  local result = options.result and results.parse(options.result)
  local job = record.require_held(jid, ended.worker, fence,
    options.next and record.read or record.read_running)
  if job.queue ~= queue then errors.bad_state(job, 'the job runs in another queue') end
  if options.data_keys then
    key_changes.apply(job, key_changes.merge(job, options.data_keys), now)
  end

  history.append_encoded(jid, job, ended.event)
  stats.add('run', queue, now, now - (job.time or now))
  if presence.has('tracked') then events.publish_tracked('completed', jid) end
  if data then record.set_fields(jid, 'data', data) end
  if job.constraints then admission.release(job, now) end
  if job.grace or job.scheduled then record.delete_fields(jid, 'grace', 'scheduled') end
  if options.next then return completion.advance(job, options, now) end
  if result then results.store(job, result) end
  if options.durable then
    steps.delete(jid)
    completion.note_end_of_child(job, result, string.match(options.durable, '^%S+ (.+)$'))
  end
  if presence.has('config') and archive.is_on() then completion.archive(job, now) end
  redis.call('HSET', keys.job(jid), 'state', 'complete', 'queue', '', 'worker', '', 'expires',
    '0', 'failure', '{}', 'remaining', job.retries, 'time', ended.time)
  if job.constraints then
    stored_constraints.release(job, now)
    local set = job_constraints.read_set(job.constraints)
    if set then completion.end_member(set, jid, result, now) end
  end
  local of_queue = ended.by_queue[queue]
  if not of_queue then
    of_queue = {event_end = ',"queue":' .. cjson.encode(queue) .. '}'}
    ended.by_queue[queue] = of_queue
  end
  redis.call('PUBLISH', keys.log_channel(),
    '{"event":"completed","jid":' .. cjson.encode(jid) .. of_queue.event_end)
  of_queue[#of_queue + 1] = jid
  ended.jids[#ended.jids + 1] = jid
  if presence.has('retention_rules') then
    ended.at[jid] = retention.compute_completed_at(job, now)
  end
  return 'complete'
end

-- A run of a job completes that may be a child. `text` is what its handler returned, as JSON: its
-- parent may look for it before the note is done.
function completion.note_end_of_child(job, result, text)
  local parent = redis.call('HGET', keys.job(job.jid), 'x-parent')
  if not parent then return end
  local drops_result = text and not result or nil
  if drops_result then results.store(job, {value = text, seconds = RESULT_OF_CHILD}) end
  notes.store('child ended', {jid = job.jid, parent = parent, drops_result = drops_result})
end

-- Complete a job that is in no set of its queue, instead of another run: a newer one, `by`, has its
-- unique key.
function completion.supersede(job, by, now)
  local jid = job.jid
  history.append(jid, job, now, 'superseded', cjson.encode({by = by}))
  history.append(jid, job, now, 'done')
  events.publish({event = 'completed', jid = jid, queue = job.queue})
  events.publish_tracked('completed', jid)
  if archive.is_on() then completion.archive(job, now) end
  steps.delete(jid)
  record.delete_fields(jid, 'grace', 'scheduled', 'x-declined')
  record.set_fields(jid, 'state', 'complete', 'queue', '', 'worker', '', 'expires', 0,
    'failure', '{}', 'remaining', job.retries, 'time', record.format_time(now))
  redis.call('ZADD', keys.completed(), retention.compute_completed_at(job, now), jid)
  stored_constraints.release(job, now)
  local set = job_constraints.read_set(job.constraints)
  if set then completion.end_member(set, jid, nil, now) end
  notes.add('completed', {jid})
end

-- Refuse what contradicts `next`.
function completion.check_options(jid, options)
  if not options.next and options.delay then
    errors.bad_argument('delay', options.delay, 'cannot be used without next')
  end
  if not options.next and options.depends then
    errors.bad_argument('depends', nil, 'cannot be used without next')
  end
  if options.next and options.result then
    errors.bad_argument('result', nil, 'cannot be used with next')
  end
  if options.depends then dependency.check_not_itself(jid, options.depends) end
end

-- Move a job on to the queue `options.next`.
function completion.advance(job, options, now)
  local queue, depends = options.next, options.depends or {}
  queue_sets.remove(job.queue, job.jid)
  redis.call('ZREM', keys.worker_jobs(job.worker), job.jid)
  redis.call('PUBLISH', keys.log_channel(), '{"event":"advanced","jid":' .. cjson.encode(job.jid)
    .. ',"queue":' .. cjson.encode(job.queue) .. ',"to":' .. cjson.encode(queue) .. '}')
  history.append(job.jid, job, now, 'put', cjson.encode({q = queue}))
  queue_sets.register_queue(queue, now)
  dependency.link(job.jid, depends)
  record.delete_fields(job.jid, 'x-lost', 'x-declined')
  local state = placement.put(job.jid, queue, job.priority, options.delay or 0, now, true,
    job.constraints)
  if archive.is_on() then
    archive.append(job, 'advance', now, {to = queue, state = state})
  end
  if depends[1] then
    record.set_fields(job.jid, 'x-after', json.texts(depends))
    record.delete_fields(job.jid, 'x-if-dependency-fails')
    policies.follow_links(job.jid)
  end
  redis.call('HSET', keys.job(job.jid), 'state', state, 'queue', queue, 'worker', '',
    'expires', '0', 'failure', '{}', 'remaining', job.retries,
    'time', record.format_time(now))
  return state
end

function completion.end_member(set, jid, result, now)
  if result then redis.call('SADD', keys.members(set, 'results'), jid) end
  members.move(set, jid, 'complete', now)
end

function completion.archive(job, now)
  archive.append(job, 'complete', now, {state = 'complete'})
  record.set_fields(job.jid, 'x-archived', record.format_time(now))
end

-- Remove the completed jobs from the running ones and their worker, add them to the set of
-- completed jobs, of which old ones are deleted. There are at most 1,000 per call, so they can be
-- unpacked.
function completion.flush(ended)
  local now = ended.now
  for queue, jids in pairs(ended.by_queue) do
    queue_sets.remove_running(queue, unpack(jids))
    redis.call('ZREM', keys.worker_jobs(ended.worker), unpack(jids))
    if #jids > 1 or redis.call('EXISTS', keys.dependents(jids[1])) == 1 then
      notes.add('completed', jids)
    end
  end
  if ended.jids[1] then
    local added = {}
    for i, jid in ipairs(ended.jids) do
      added[2 * i - 1], added[2 * i] = ended.at[jid] or ended.time, jid
    end
    redis.call('ZADD', keys.completed(), unpack(added))
  end
  local prunes = stats.flush()
  if not ended.jids[1] then return end
  -- Without options, a set of 50,000 jobs and a week need not be exact.
  if presence.has('config') then
    retention.prune_completed(now, 20 + 2 * #ended.jids)
  elseif prunes then
    retention.prune_completed(now, constants.PRUNED_EVERY * 2 + 2 * #ended.jids)
  end
end
