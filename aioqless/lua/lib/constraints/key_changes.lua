-- key_changes: a job gets other data, and what its constraints take from the data changes with it.
-- Its client computes that (`data_keys`) from the fields that `fields` of the constraints names:
--   unique, fair, bulk   its keys
--   limits, costs        the keys and the costs of its limits, by their number from 1

-- The constraints of a job, as JSON, with what other data makes of them; nil if that is nothing.
-- Refuse what is invalid.
function key_changes.merge(job, data_keys)
  local text = job.constraints
  if not (data_keys and text) then return nil end
  local own, given = job_constraints.read(text), json.parse_object(data_keys)
  for _, name in ipairs({'unique', 'fair', 'bulk'}) do
    job_constraints.check_name(name, given[name])
    if own[name] then own[name] = given[name] or own[name] end
  end
  for number, limit in ipairs(own.limits or {}) do
    local by_number = tostring(number)
    limit.key = given.limits and given.limits[by_number] or limit.key
    limit.cost = given.costs and given.costs[by_number] or limit.cost
  end
  if own.limits then job_constraints.check_limits(own.limits) end
  local set = members.read_set(text)
  own.set = nil
  local merged = cjson.encode(own)
  return set and members.name_set(merged, set) or merged
end

-- Give a job constraints that were merged, if they were. It leaves the limits, the turns and the
-- bulk that it counts in, for a caller that adds it to its queue again. Its unique key is free, and
-- it takes the new one unless another job has that.
function key_changes.apply(job, text, now)
  if not text then return end
  local before, own = job_constraints.read(job.constraints), job_constraints.read(text)
  limits.release(job, now)
  record.set_fields(job.jid, 'x-constraints', text)
  job.constraints = text
  if own.unique == before.unique then return end
  job_constraints.release_key(before, job.jid, now)
  if (own['for'] or job.state ~= 'failed') and not uniqueness.find_holder(own.unique, now) then
    uniqueness.claim(own, job.jid, now)
  end
end

-- The same for a job that stays in its queue, where it keeps its place.
function key_changes.apply_in_queue(job, text, now)
  if not text then return end
  local before = job_constraints.read(job.constraints)
  local since = key_changes.read_since(job, before, now)
  key_changes.apply(job, text, now)
  if job.state == 'depends' and before.debounce then
    dependency.unlink_all(job.jid)  -- it is no longer the follow-up of a job with its key
    dependency.release(job.jid, now)
  end
  if not since then return end
  queue_sets.remove(job.queue, job.jid)
  local own, state = bulks.read(job.constraints), 'waiting'
  if own then
    state = bulks.gather(job.queue, job.jid, job.priority, own, job.constraints, since, now)
  else
    queue_sets.add_waiting(job.queue, job.jid,
      turns.enter(job.queue, job.jid, job.priority, job.constraints, since, now)
        or priority_score.compute(job.priority, since))
  end
  record.set_fields(job.jid, 'state', state)
end

-- Since when a job has waited, gathered or been held back; nil for any other.
function key_changes.read_since(job, own, now)
  local score = job.state == 'waiting' and redis.call('ZSCORE', keys.waiting(job.queue), job.jid)
  if job.state == 'scheduled' then
    local _, held = held_jobs.find(own, job.jid)
    score = held or own.bulk and bulks.find_score(job.queue, job.jid, own)
  end
  if not score then return nil end
  local _, ready = turns.parse(redis.call('HGET', keys.job(job.jid), 'x-turn') or nil)
  return ready or priority_score.read_since(tonumber(score), job.priority) or job.time or now
end
