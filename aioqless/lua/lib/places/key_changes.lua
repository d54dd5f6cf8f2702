-- key_changes: a job gets other data, and what its constraints take from the data changes with it.
-- Its client computes that (`data_keys`) from the fields that `fields` of the constraints names:
--   unique, fair, bulk   its keys
--   limits, costs        the keys and the costs of its limits, by their number from 1

-- The constraints of a job, as JSON, with what other data makes of them; nil if they stay as they
-- are. Refuse what is invalid.
function key_changes.merge(job, data_keys)
  local text, changed = job.constraints, false
  if not (data_keys and text) then return nil end
  local own, given = job_constraints.read(text), json.parse_object(data_keys)
  local function set(of, name, value)
    if value == nil or of[name] == nil or of[name] == value then return end
    of[name], changed = value, true
  end
  for _, name in ipairs({'unique', 'fair', 'bulk'}) do
    job_constraints.check_name(name, given[name])
    set(own, name, given[name])
  end
  for number, limit in ipairs(own.limits or {}) do
    set(limit, 'key', given.limits and given.limits[tostring(number)])
    set(limit, 'cost', given.costs and given.costs[tostring(number)])
  end
  if not changed then return nil end
  if own.limits then job_constraints.check_limits(own.limits) end
  local set_number = job_constraints.read_set(text)
  own.set = nil
  local merged = cjson.encode(own)
  return set_number and job_constraints.name_set(merged, set_number) or merged
end

-- Give a job constraints that were merged, if they were. It leaves the limits, the turns and the
-- bulk that it counts in, for a caller that adds it to its queue again. Its unique key is free, and
-- it takes the new one unless another job has that.
function key_changes.apply(job, text, now)
  if not text then return end
  local before, own = job_constraints.read(job.constraints), job_constraints.read(text)
  admission.release(job, now)
  record.set_fields(job.jid, 'x-constraints', text)
  if own.fair ~= before.fair then record.delete_fields(job.jid, 'x-turn') end
  job.constraints = text
  if own.unique == before.unique then return end
  stored_constraints.release_key(before, job.jid, now)
  if (own['for'] or job.state ~= 'failed') and not uniqueness.find_holder(own.unique, now) then
    uniqueness.claim(own, job.jid, now)
  end
  if before.debounce and job.state == 'depends' then key_changes.leave_former(job) end
end

-- A job is no longer the follow-up of a job with its former key.
function key_changes.leave_former(job)
  for _, other in ipairs(redis.call('SMEMBERS', keys.dependencies(job.jid))) do
    if redis.call('HGET', keys.job(other), 'x-follow-up') == job.jid then
      dependency.unlink(job.jid, {other})
    end
  end
  notes.add('unblocked', job.jid)
end

-- Give merged constraints to a job that doesn't run. It keeps its place in its queue.
function key_changes.apply_in_queue(job, text, now)
  if not text then return end
  local score = key_changes.find_score(job)
  key_changes.apply(job, text, now)
  if not score then return end
  local own, state = bulks.read(job.constraints), 'waiting'
  queue_sets.remove(job.queue, job.jid)
  if score == 'inf' then
    queue_sets.add_waiting(job.queue, job.jid, score)
  elseif own then
    local since = priority_score.read_since(tonumber(score), job.priority) or now
    state = bulks.gather(job.queue, job.jid, job.priority, own, job.constraints, since, now)
  else
    queue_sets.add_waiting(job.queue, job.jid,
      turns.resume(job.queue, job.jid, job.priority, job.constraints, now) or score)
  end
  record.set_fields(job.jid, 'state', state)
end

-- The score of a job that waits, gathers or is held back; nil for any other.
function key_changes.find_score(job)
  if job.state == 'waiting' then
    return redis.call('ZSCORE', keys.waiting(job.queue), job.jid) or nil
  elseif job.state ~= 'scheduled' then
    return nil
  end
  local own = job_constraints.read(job.constraints)
  local _, held = held_jobs.find(own, job.jid)
  return held or own.bulk and bulks.find_score(job.queue, job.jid, own) or nil
end

-- A job that runs gets other keys: it counts in their limits from now on, and in no others.
function key_changes.apply_while_running(job, text, expires, now)
  if not text then return end
  key_changes.apply(job, text, now)
  for _, limit in ipairs(job_constraints.read(text).limits or {}) do
    if limit.limit then redis.call('ZADD', keys.limit_running(limit.key), expires, job.jid) end
  end
end
