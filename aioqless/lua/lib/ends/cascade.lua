-- cascade: apply the policies (`if_dependency_fails`) of jobs whose dependency has failed. Without
-- a policy they stay held.
-- A job with the policy `run` runs when each of its dependencies is complete, deleted, failed, or
-- held by a failed one, directly or through others. All that it depends on so is marked, and each
-- job that depends on a marked one has a set of those that can't complete (`x:stuck`).

local CHOICES = {hold = true, fail = true, cancel = true, run = true}
local DIRECT, THROUGH_OTHERS = '1', '2'  -- values of x-cascade
local PORTION = 200

function cascade.check_policy(choice)
  if choice and not CHOICES[choice] then
    errors.bad_argument('if_dependency_fails', choice, 'must be hold, fail, cancel or run')
  end
end

-- Set a job's policy, and mark its dependencies, so that only failures that matter to a dependent
-- cost anything.
function cascade.set_policy(jid, choice, now)
  if not choice or choice == 'hold' then
    return record.delete_fields(jid, 'x-if-dependency-fails')
  end
  record.set_fields(jid, 'x-if-dependency-fails', choice)
  branches.note_use(now)
  cascade.mark_dependencies(jid, choice)
end

-- Mark the dependencies of a job with a policy.
function cascade.mark_dependencies(jid, choice)
  for _, other in ipairs(redis.call('SMEMBERS', keys.dependencies(jid))) do
    if choice == 'run' then
      cascade.mark_through(other)
    else
      local state = redis.call('HGET', keys.job(other), 'state')
      if state then redis.call('HSETNX', keys.job(other), 'x-cascade', DIRECT) end
      if state == 'failed' then cascade.defer('failed', other, keys.dependents(other)) end
    end
  end
end

-- Mark a job, and later all that it depends on: a job with the policy `run` waits for it, directly
-- or through others.
function cascade.mark_through(jid)
  local f = redis.call('HMGET', keys.job(jid), 'state', 'x-cascade')
  if f[1] and f[2] ~= THROUGH_OTHERS then
    record.set_fields(jid, 'x-cascade', THROUGH_OTHERS)
    cascade.defer('mark', jid, keys.dependencies(jid))
  end
  if f[1] and cascade.is_stuck(jid) then cascade.defer('stuck', jid, keys.dependents(jid)) end
end

-- Dependencies were added to a job.
function cascade.follow_links(jid)
  local f = redis.call('HMGET', keys.job(jid), 'x-if-dependency-fails', 'x-cascade')
  local choice = f[2] == THROUGH_OTHERS and 'run' or f[1]
  if choice then cascade.mark_dependencies(jid, choice) end
end

-- A job that is marked has failed, or was held and isn't: defer what follows for its dependents.
function cascade.note_failure(jid, mark)
  cascade.defer('failed', jid, keys.dependents(jid))
  if mark == THROUGH_OTHERS then cascade.defer('stuck', jid, keys.dependents(jid)) end
  redis.call('PUBLISH', keys.ticks_channel(), '')
end

-- A failed job is to run again.
function cascade.note_retry(jid)
  if redis.call('HGET', keys.job(jid), 'x-cascade') ~= THROUGH_OTHERS then return end
  cascade.defer('stuck', jid, keys.dependents(jid))
  redis.call('PUBLISH', keys.ticks_channel(), '')
end

-- Set the policy of one job, and apply it if a dependency has failed before.
function cascade.apply_policy(jid, choice, now)
  cascade.set_policy(jid, choice, now)
  cascade.run_deferred(now)
end

-- Defer work on a set of jobs: to apply the policies after `jid` has failed, or was canceled since
-- another one has; to tell them whether it is stuck; to mark them.
function cascade.defer(what, jid, dependents)
  local note = what .. ':1:' .. jid
  if redis.call('SUNIONSTORE', keys.deferred_jids(note), keys.deferred_jids(note),
    dependents) > 0 then
    redis.call('SADD', keys.deferred_failures(), note)
  end
end

-- Run deferred work. What is too much for this call is left to workers' ticks.
function cascade.run_deferred(now)
  local most = PORTION
  while redis.call('EXISTS', keys.deferred_failures()) == 1 do
    if most <= 0 then return redis.call('PUBLISH', keys.ticks_channel(), '') end
    most = most - math.max(1,
      cascade.run_portion(redis.call('SRANDMEMBER', keys.deferred_failures()), now, most))
  end
end

-- Run a portion of the work that a note describes; return the number of jobs.
function cascade.run_portion(note, now, most)
  local what, jid = string.match(note, '^(%l+):%d+:(.*)$')
  local others = redis.call('SPOP', keys.deferred_jids(note), most)
  local stuck = what == 'stuck' and cascade.is_stuck(jid)
  local holds = what == 'canceled' or redis.call('HGET', keys.job(jid), 'state') == 'failed'
  for _, other in ipairs(others) do
    if what == 'mark' then
      cascade.mark_through(other)
    elseif what == 'stuck' then
      cascade.set_stuck(other, jid, stuck, now)
    elseif holds and redis.call('SISMEMBER', keys.dependencies(other), jid) == 1 then
      cascade.apply(what, jid, other, now)
    end
  end
  if redis.call('EXISTS', keys.deferred_jids(note)) == 0 then
    redis.call('SREM', keys.deferred_failures(), note)
  end
  return #others
end

-- Whether a job can't complete, since it has failed, or a failed one holds it.
function cascade.is_stuck(jid)
  local f = redis.call('HMGET', keys.job(jid), 'state', 'x-if-dependency-fails')
  return f[1] == 'failed'
    or f[1] == 'depends' and f[2] ~= 'run' and redis.call('EXISTS', keys.stuck(jid)) == 1
end

-- Note in a job whether a dependency is stuck, if that matters; if it begins or ceases to be stuck
-- itself, its own dependents come later.
function cascade.set_stuck(jid, other, stuck, now)
  local f = redis.call('HMGET', keys.job(jid), 'x-if-dependency-fails', 'x-cascade',
    'x-constraints')
  if f[1] ~= 'run' and f[2] ~= THROUGH_OTHERS then return end
  local before = redis.call('EXISTS', keys.stuck(jid))
  if stuck and redis.call('SISMEMBER', keys.dependencies(jid), other) == 1 then
    redis.call('SADD', keys.stuck(jid), other)
  else
    redis.call('SREM', keys.stuck(jid), other)
  end
  local after = redis.call('EXISTS', keys.stuck(jid))
  if after == 1 then dependency.release_stuck(jid, now) end
  if after ~= before then
    cascade.defer('stuck', jid, keys.dependents(jid))
    local set = f[3] and f[1] ~= 'run' and members.read_set(f[3])
    if set then members.hold(set, jid, after == 1, now) end
  end
end

-- Apply a dependent's policy. If the dependency was canceled, the dependent can never run and is
-- canceled, whatever its policy; but one with the policy `run` no longer waits for it.
function cascade.apply(what, cause, jid, now)
  local job = record.read(jid)
  if not job or job.state ~= 'depends' then return end
  local choice = redis.call('HGET', keys.job(jid), 'x-if-dependency-fails')
  if choice == 'run' then
    if what == 'canceled' then
      dependency.unlink(jid, {cause})
      dependency.release(jid, now)
    end
  elseif choice == 'cancel' or what == 'canceled' then
    cascade.defer('canceled', jid, keys.dependents(jid))
    cancellation.delete(job)
  elseif choice == 'fail' then
    dependency.unlink_all(jid)
    local group = redis.call('HGET', keys.job(cause), 'failure')
    local why = 'it depends on job ' .. cause .. ', which failed: '
      .. (json.parse_object(group).group or '')
    failures.fail(job, job.queue .. '-dependency-failed', why, '', now)
  end
end
