-- enqueue: put a job into a queue, a new one or from wherever it is.

-- What all commands take that put jobs (`@options enqueue`); absent ones are kept from an existing
-- job:
--
-- @option  at       seconds       when it may run, in seconds since 1970; overrides the delay
-- @option  priority priority      negative runs sooner; default: 0
-- @option  tags     tags
-- @option  retries  count         default: 5
-- @option  depends  jids          jobs to wait for; unknown and complete ones count as done
-- @option  context  object        strings by name that travel with the job, such as a trace
-- @option  expires_in seconds       the job expires if it has not started within this time
-- @option  constraints object      uniqueness and limits (lib/base/job_constraints.lua)
-- @option  if_dependency_fails name  hold (default), fail, cancel or run it when a dependency fails
-- @option  on_failure job_json     the job that its failure puts (lib/base/job_json.lua)
-- @option  missing  name          what a dependency is that doesn't exist: done (default) or refuse

-- Put a job, `put`, which has queue, jid, klass, data, now, delay, and the worker that puts it. One
-- that is to run again, and is not replaced, has `again`, and perhaps the `data_keys` of new data:
-- it keeps its steps and its constraints.
function enqueue.put(put, options)
  if options.if_dependency_fails then policies.check(options.if_dependency_fails) end
  if options.missing then
    dependency.check_missing(options.missing, options.depends, {[put.jid] = true})
  end
  local asked = options.constraints and job_constraints.parse(options.constraints, true)
  if asked and asked.debounce then debounce.join(put, options, asked) end
  if presence.has('config') then max_length.check(put.queue, put.jid) end
  local jid = enqueue.write(put, options, asked)
  if options.if_dependency_fails and jid == put.jid then
    policies.set(jid, options.if_dependency_fails, put.now)
  end
  return jid
end

-- Put a job whose queue has room, without its policy for failed dependencies. `asked`: its
-- constraints, if they are parsed.
function enqueue.write(put, options, asked)
  local jid, queue, now = put.jid, put.queue, put.now
  -- The set is named twice, so that the count tells the two apart.
  local waiting = keys.waiting(queue)
  local found = redis.call('EXISTS', keys.job(jid), waiting, waiting)
  local job = found % 2 == 1 and record.read(jid) or nil
  asked = asked or options.constraints and job_constraints.parse(options.constraints)
  local other = asked and not asked.joins and stored_constraints.find_conflict(asked, job, now)
  if other and not (put.again and other == jid) then return other end
  local depends = options.depends
  if depends then enqueue.check_dependencies(jid, job, depends) end
  local tags = options.tags or (job and json.parse_texts(job.tags))
  local retries = options.retries or (job and job.retries) or constants.DEFAULT_RETRIES
  local priority = options.priority or (job and job.priority) or 0

  local changed = job and put.data_keys and key_changes.merge(job, put.data_keys)
  if job then enqueue.archive_move(job, queue, now) end
  if changed then key_changes.apply(job, changed, now) end
  local named = cjson.encode(queue)
  redis.call('PUBLISH', keys.log_channel(),
    '{"event":"put","jid":' .. cjson.encode(jid) .. ',"queue":' .. named .. '}')
  if job then
    history.append(jid, job, now, 'put', '{"q":' .. named .. '}', true)
    enqueue.remove_former(job, put.worker or '', depends or {}, now, put.again)
  end
  if tags then tagging.attach(jid, tags, now) end
  if depends then dependency.link(jid, depends) end
  if asked and asked.joins then debounce.write(jid, asked.joins, options) end
  local delay, state = options.at and options.at - now or put.delay, 'waiting'
  if job or depends or delay > 0 or asked and asked.bulk then
    state = placement.put(jid, queue, priority, delay, now, true,
      options.constraints or (put.again and job.constraints))
  else
    local turn = asked and enqueue.take_turn(put, priority, asked, found < 2)
    queue_sets.add_waiting(queue, jid, turn or queue_sets.compute_last(queue, priority, now),
      found >= 2)
  end
  local time = string.format('%.6f', now)
  redis.call('HSET', keys.job(jid), 'jid', jid, 'klass', put.klass, 'data', put.data,
    'priority', priority ~= 0 and json.number(priority) or '0',
    'tags', tags and json.texts(tags) or '[]', 'state', state,
    'queue', queue, 'retries', retries, 'remaining', retries,
    'time', time, 'history', job and '[]' or history.encode_put(time, named))
  if job or next(options) then enqueue.write_options(put, options, job, asked) end
  queue_sets.register_queue(queue, now)
  if presence.has('tracked') then events.publish_tracked('put', jid) end
  return jid
end

function enqueue.check_dependencies(jid, job, depends)
  dependency.check_not_itself(jid, depends)
  if job and #depends > 0 and redis.call('SCARD', keys.dependencies(jid)) > constants.MAX_BATCH then
    errors.bad_argument('depends', nil,
      'would replace more than 1,000 dependencies; remove them first')
  end
end

-- The end of a stage is archived: that of a job which is put again.
function enqueue.archive_move(job, queue, now)
  if not archive.is_on() then return end
  if job.state == 'complete' or job.state == 'failed' then
    archive_backfill.append(job)
  else
    archive.append(job, 'move', now, {to = queue})
  end
end

-- The score of a new job that takes its turn at once; nil for one without a tenant.
function enqueue.take_turn(put, priority, asked, alone)
  if not asked.fair then return nil end
  local score
  score, asked.turn = turns.take(put.queue, put.jid, priority, asked, put.now, put.now, alone)
  return score
end

-- Write what most jobs don't have: dependencies, expiry, context, constraints.
function enqueue.write_options(put, options, job, asked)
  local jid, depends = put.jid, options.depends
  if depends and #depends > 0 then
    record.set_fields(jid, 'x-after', json.texts(depends))
    if job then
      record.delete_fields(jid, 'x-if-dependency-fails')
      policies.follow_links(jid)
    end
  end
  if options.on_failure then failure_jobs.set(jid, options.on_failure, put.now) end
  if options.expires_in then
    record.set_fields(jid, 'x-expiry', put.now + options.expires_in)
  elseif job then
    record.delete_fields(jid, 'x-expiry')
  end
  if options.context then record.set_fields(jid, 'x-context', options.context) end
  local former = job and job.constraints
  if asked or former then
    local own = asked or put.again and job_constraints.read(former) or {}
    local text = options.constraints or not put.again and '{}'
    stored_constraints.apply(jid, text, own, former, put.now)
    local set = former and job_constraints.read_set(former)
    if set then members.reopen(set, jid, text, put.now) end
  end
end

-- Remove an existing job from everything that refers to its former state.
function enqueue.remove_former(job, worker, depends, now, again)
  tagging.detach(job.jid, json.parse_texts(job.tags))
  if #depends > 0 then
    local wanted = {}
    for _, other in ipairs(depends) do wanted[other] = true end
    local dropped = {}
    for _, other in ipairs(redis.call('SMEMBERS', keys.dependencies(job.jid))) do
      if not wanted[other] then dropped[#dropped + 1] = other end
    end
    dependency.unlink(job.jid, dropped)
  end
  if job.queue ~= '' then queue_sets.remove(job.queue, job.jid) end
  if job.constraints then admission.release(job, now) end
  if job.worker ~= '' then
    redis.call('ZREM', keys.worker_jobs(job.worker), job.jid)
    if job.worker ~= worker then events.publish_lock_lost(job.worker, job.jid) end
  end
  if job.state == 'complete' then redis.call('ZREM', keys.completed(), job.jid) end
  if job.state == 'failed' then
    failures.leave_group(job)
    policies.note_retry(job.jid)
  end
  record.set_fields(job.jid, 'worker', '', 'expires', 0)
  record.delete_fields(job.jid, 'grace', 'scheduled', 'x-lost', 'x-declined')
  if not again and redis.call('HDEL', keys.job(job.jid), 'x-steps') == 1 then
    steps.delete(job.jid)
  end
end
