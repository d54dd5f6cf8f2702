-- policies: what happens to a job if a dependency fails (`if_dependency_fails`). Without
-- a policy it stays held.
-- A job with the policy `run` runs when each of its dependencies is complete, deleted, failed, or
-- held by a failed one, directly or through others. All that it depends on so is marked, and each
-- job that depends on a marked one has a set of those that can't complete (`x:stuck`).

local CHOICES = {hold = true, fail = true, cancel = true, run = true}
local DIRECT, THROUGH_OTHERS = '1', '2'  -- values of x-cascade

function policies.check(choice)
  if choice and not CHOICES[choice] then
    errors.bad_argument('if_dependency_fails', choice, 'must be hold, fail, cancel or run')
  end
end

-- Set a job's policy, and mark its dependencies, so that only failures that matter to a dependent
-- cost anything.
function policies.set(jid, choice, now)
  if not choice or choice == 'hold' then
    return record.delete_fields(jid, 'x-if-dependency-fails')
  end
  record.set_fields(jid, 'x-if-dependency-fails', choice)
  failure_jobs.note_use(now)
  policies.mark_dependencies(jid, choice)
end

-- Mark the dependencies of a job with a policy.
function policies.mark_dependencies(jid, choice)
  for _, other in ipairs(redis.call('SMEMBERS', keys.dependencies(jid))) do
    if choice == 'run' then
      policies.mark_through(other)
    else
      local state = redis.call('HGET', keys.job(other), 'state')
      if state then redis.call('HSETNX', keys.job(other), 'x-cascade', DIRECT) end
      if state == 'failed' then policies.note_all('failed', other, keys.dependents(other)) end
    end
  end
end

-- Mark a job, and later all that it depends on: a job with the policy `run` waits for it, directly
-- or through others.
function policies.mark_through(jid)
  local f = redis.call('HMGET', keys.job(jid), 'state', 'x-cascade')
  if f[1] and f[2] ~= THROUGH_OTHERS then
    record.set_fields(jid, 'x-cascade', THROUGH_OTHERS)
    policies.note_all('mark', jid, keys.dependencies(jid))
  end
  if f[1] and policies.is_stuck(jid) then policies.note_all('stuck', jid, keys.dependents(jid)) end
end

-- Dependencies were added to a job.
function policies.follow_links(jid)
  local f = redis.call('HMGET', keys.job(jid), 'x-if-dependency-fails', 'x-cascade')
  local choice = f[2] == THROUGH_OTHERS and 'run' or f[1]
  if choice then policies.mark_dependencies(jid, choice) end
end

-- A job that is marked has failed: note what follows for its dependents.
function policies.note_failure(jid, mark)
  policies.note_all('failed', jid, keys.dependents(jid))
  if mark == THROUGH_OTHERS then policies.note_all('stuck', jid, keys.dependents(jid)) end
end

-- A failed job is to run again.
function policies.note_retry(jid)
  if redis.call('HGET', keys.job(jid), 'x-cascade') ~= THROUGH_OTHERS then return end
  policies.note_all('stuck', jid, keys.dependents(jid))
end

-- Note what follows for a set of jobs: to apply the policies after `jid` has failed, or was
-- canceled since another one has; to tell them whether it is stuck; to mark them.
function policies.note_all(what, jid, others)
  local of = what .. ':1:' .. jid
  if redis.call('SUNIONSTORE', keys.noted_jids(of), keys.noted_jids(of), others) > 0 then
    notes.store('policies', of)
  end
end

-- Whether a job can't complete, since it has failed, or a failed one holds it.
function policies.is_stuck(jid)
  local f = redis.call('HMGET', keys.job(jid), 'state', 'x-if-dependency-fails')
  return f[1] == 'failed'
    or f[1] == 'depends' and f[2] ~= 'run' and redis.call('EXISTS', keys.stuck(jid)) == 1
end
