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
-- @option  within   seconds       the job expires if it has not started within this time
-- @option  terms    object        uniqueness, concurrency and rate limits (lib/constraints.lua)
-- @option  on_failed name         hold (default), fail or cancel it when a dependency fails

-- Put a job, `put`, which has queue, jid, klass, data, now, delay, and the worker that puts it.
function enqueue.put(put, options)
  if options.on_failed then cascade.check_policy(options.on_failed) end
  max_length.check(put.queue, put.jid)
  local jid = enqueue.write(put, options)
  if options.on_failed and jid == put.jid then
    cascade.apply_policy(jid, options.on_failed, put.now)
  end
  return jid
end

-- Put a job whose queue has room, without its policy for failed dependencies.
function enqueue.write(put, options)
  local job = record.find(put.jid)
  local terms = options.terms and constraints.parse(options.terms)
  local other = terms and constraints.find_conflict(terms, job, put.now)
  if other then return other end
  local depends = options.depends or {}
  dependency.check_not_itself(put.jid, depends)
  if job and #depends > 0
    and redis.call('SCARD', keys.dependencies(put.jid)) > constants.MAX_BATCH then
    errors.bad_argument('depends', nil,
      'would replace more than 1,000 dependencies; remove them first')
  end
  local tags = options.tags or (job and json.parse_texts(job.tags)) or {}
  local retries = options.retries or (job and job.retries) or constants.DEFAULT_RETRIES
  local priority = options.priority or (job and job.priority) or 0

  if job and archive.is_on() then
    if job.state == 'complete' or job.state == 'failed' then
      archive_backfill.append(job)
    else
      archive.append(job, 'move', put.now, {to = put.queue})
    end
  end
  events.publish_put(put.jid, put.queue)
  history.append_put(put.jid, job, put.now, put.queue)
  if job then enqueue.remove_former(job, put.worker or '', depends, put.now) end
  tagging.attach(put.jid, tags, put.now)
  dependency.link(put.jid, depends)
  local delay = options.at and options.at - put.now or put.delay
  local state = enqueue.add(put.jid, put.queue, priority, delay, put.now, job or #depends > 0)
  record.set_fields(put.jid, 'jid', put.jid, 'klass', put.klass, 'data', put.data,
    'priority', json.number(priority), 'tags', json.texts(tags), 'state', state, 'worker', '',
    'expires', '0', 'queue', put.queue, 'retries', json.number(retries),
    'remaining', json.number(retries), 'time', record.format_time(put.now))
  if #depends > 0 then
    record.set_fields(put.jid, 'x-after', json.texts(depends))
    if job then record.delete_fields(put.jid, 'x-on-failed') end
  end
  if options.within then
    record.set_fields(put.jid, 'x-start-by', put.now + options.within)
  elseif job then
    record.delete_fields(put.jid, 'x-start-by')
  end
  if options.context then record.set_fields(put.jid, 'x-context', options.context) end
  local former = job and job.terms
  if terms or former then
    constraints.apply(put.jid, options.terms, terms or constraints.read(former), former, put.now)
  end
  queue_sets.register_queue(put.queue, put.now)
  events.publish_tracked('put', put.jid)
  return put.jid
end

-- Add a job to the set where it belongs: held by dependencies, scheduled, or waiting. Return the
-- state, which the caller writes.
function enqueue.add(jid, queue, priority, delay, now, may_depend)
  local due = delay > 0 and now + delay or nil
  if may_depend and dependency.is_blocked(jid) then
    queue_sets.add_depending(queue, jid, now)
    if due then record.set_fields(jid, 'scheduled', due) end
    return 'depends'
  end
  return queue_sets.add(queue, jid, priority, due, now)
end

-- Remove an existing job from everything that refers to its former state.
-- @seldom
function enqueue.remove_former(job, worker, depends, now)
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
  if job.terms then limits.release(job, now) end
  if job.worker ~= '' then
    redis.call('ZREM', keys.worker_jobs(job.worker), job.jid)
    if job.worker ~= worker then events.publish_lock_lost(job.worker, job.jid) end
  end
  if job.state == 'complete' then redis.call('ZREM', keys.completed(), job.jid) end
  if job.state == 'failed' then failures.leave_group(job) end
  record.delete_fields(job.jid, 'grace', 'scheduled', 'x-lost', 'x-declined')
end
