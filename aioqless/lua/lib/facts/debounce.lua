-- debounce: the puts with a unique key that ask for it (`debounce` of their constraints) are one
-- job, with the data of the last one. If the job has started, they are its follow-up, which its
-- field `x-follow-up` names: it depends on the job, and has the key after it. The key's entry names
-- the job that has started, else the one that has not.

local LONGEST = 10  -- of a chain of follow-ups; one of other than two was made by hand

-- Decide which job a put is: a new one, the one that has not started, or a follow-up.
function debounce.join(put, options, own)
  if options.at or options.depends or options.if_dependency_fails or put.delay > 0 then
    errors.bad_argument('debounce', own.debounce, 'excludes a delay and dependencies')
  end
  local key, now = own.unique, put.now
  local last = debounce.find_last(key, now)
  local f = last and redis.call('HMGET', keys.job(last), 'x-constraints', 'x-fence', 'x-first-put',
    'state') or {}
  if last and not job_constraints.read(f[1]).debounce then
    own.debounce = nil  -- another kind of job has the key
    return
  end
  local holder = uniqueness.find_holder(key, now)
  -- Other clients' runs have no fence; a follow-up that failed and is held again has one.
  local is_new, first = not last or f[4] == 'running'
    or f[2] and (f[4] ~= 'depends' or last == holder), now
  if last and is_new and put.jid == last then
    errors.bad_argument('jid', last, 'is that of a job with this key that has started')
  elseif not is_new then
    local set = put.set and job_constraints.read_set(f[1])
    if set and set ~= put.set then
      errors.raise('EXISTS', 'the job is a member of another job set', {jid = last})
    end
    put.jid, first = last, tonumber(f[3]) or now
    options.priority, options.tags = options.priority or 0, options.tags or {}
    options.retries = options.retries or constants.DEFAULT_RETRIES
  end
  put.delay = own.debounce
  if own.debounce_max then
    put.delay = math.max(0, math.min(put.delay, first + own.debounce_max - now))
  end
  own.joins = {
    first = first, after = is_new and last or nil, is_follow_up = holder and holder ~= put.jid
      or is_new and last ~= nil, now = now,
  }
end

-- Write what belongs to the job of a put, before it is added to its queue.
function debounce.write(jid, joins, options)
  record.set_fields(jid, 'x-first-put', string.format('%.6f', joins.first))
  if joins.after then
    record.set_fields(joins.after, 'x-follow-up', jid)
    dependency.link(jid, {joins.after})
    failure_jobs.note_use(joins.now)  -- another client may fail it
  elseif not joins.is_follow_up then  -- another client may have ended the job that held it
    dependency.unlink_all(jid)
  end
  if not options.context then record.delete_fields(jid, 'x-context') end
  if not options.on_failure then record.delete_fields(jid, 'x-on-failure') end
end

-- The latest of the jobs of a key that have not ended; nil if there is none.
function debounce.find_last(key, now)
  local _, jid = uniqueness.read_entry(key)
  local last = uniqueness.find_holder(key, now)
  for _ = 1, jid and LONGEST or 0 do
    jid = debounce.find_follow_up(jid, key)
    if not jid then break end
    last = jid
  end
  return last
end

function debounce.find_follow_up(jid, key)
  local other = redis.call('HGET', keys.job(jid), 'x-follow-up')
  return other and uniqueness.holds(other, key) and other or nil
end

-- The newer job that makes another run of this one needless; nil if there is none.
function debounce.find_successor(job, now)
  local own = job_constraints.read(job.constraints)
  local last = own.debounce and debounce.find_last(own.unique, now)
  local first = last and last ~= job.jid and redis.call('HGET', keys.job(last), 'x-first-put')
  local own_first = first and redis.call('HGET', keys.job(job.jid), 'x-first-put')
  return first and tonumber(first) > (tonumber(own_first) or 0) and last or nil
end

-- A job has ended: its follow-up has the key, and is no longer held.
function debounce.hand_over(jid, key, now)
  local follow_up = debounce.find_follow_up(jid, key)
  if not follow_up then return uniqueness.release(key, jid) end
  if (uniqueness.find_holder(key, now) or jid) == jid then
    uniqueness.claim({unique = key}, follow_up, now)
  end
  record.delete_fields(jid, 'x-follow-up')
  dependency.unlink(follow_up, {jid})
  notes.add('unblocked', follow_up)
end
