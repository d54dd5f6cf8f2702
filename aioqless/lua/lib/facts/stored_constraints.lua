-- stored_constraints: what a job's constraints hold while the job exists: its unique key, and the
-- results that it takes from others.

-- The jid of the job that prevents a put with these constraints, if there is one. `job` is the job
-- of the same jid.
function stored_constraints.find_conflict(own, job, now)
  local other = own.if_exists and job and job.jid
    or own.unique and uniqueness.find_holder(own.unique, now)
  if other and own.if_exists == 'raise' then
    errors.raise('EXISTS', 'such a job exists already', {jid = other})
  end
  return other
end

-- The jid of the job that prevents a workflow with such a job. Two jobs of one call can't have the
-- same unique key: `claimed` has the jids of the earlier ones by these.
function stored_constraints.find_conflict_of_flow(text, jid, claimed, now)
  local own = job_constraints.parse(text)
  if own.unique and claimed[own.unique] then
    errors.raise('EXISTS', 'another job of this workflow has the same unique key', {
      jid = claimed[own.unique],
    })
  end
  if own.unique then claimed[own.unique] = jid end
  return stored_constraints.find_conflict(own, own.if_exists and record.find(jid), now)
end

-- Set a job's constraints; `former` are its earlier ones. Without a string it keeps them and is to
-- run again: then it takes its unique key again, unless another job has it by now.
function stored_constraints.apply(jid, text, own, former, now)
  local before = job_constraints.read(former)
  if before.unique ~= own.unique then stored_constraints.release_key(before, jid, now) end
  if text and former then text = results.replace(jid, before, own, text) end
  local held = own.joins and own.joins.is_follow_up
  if own.unique and not held
    and (text or not own['for'] and not uniqueness.find_holder(own.unique, now)) then
    uniqueness.claim(own, jid, now)
  end
  if not text then return end
  for other in pairs(own.takes or {}) do redis.call('SADD', keys.takers(other), jid) end
  if own.turn then
    record.set_fields(jid, 'x-constraints', text, 'x-turn', own.turn)
  elseif own.unique or own.limits or own.fair or own.bulk or own.takes or own.taken then
    record.set_fields(jid, 'x-constraints', text)
  elseif former then
    record.delete_fields(jid, 'x-constraints', 'x-turn')
  end
end

-- Free the unique key of a job that has ended or is deleted, and the results that it took.
function stored_constraints.release(job, now, deleted)
  local own = job_constraints.read(job.constraints)
  if own.taken then results.keep(job.jid, deleted) end
  if own.takes then results.let_go(job.jid, own.takes) end
  if deleted or not own['for'] then stored_constraints.release_key(own, job.jid, now) end
end

-- Free the unique key of a job, if it has one; its follow-up has it then.
function stored_constraints.release_key(own, jid, now)
  if own.debounce then
    debounce.hand_over(jid, own.unique, now)
  elseif own.unique then
    uniqueness.release(own.unique, jid)
  end
end
