-- failed_dependencies: apply the policies of jobs whose dependency has failed.

local THROUGH_OTHERS = '2'  -- of x-cascade

-- Run deferred work for at most about `most` jobs; return their number.
function failed_dependencies.run(now, most)
  local count = 0
  repeat
    local done = failed_dependencies.run_next(now, most - count)
    count = count + done
  until done == 0 or count >= most
  if redis.call('EXISTS', keys.deferred_failures()) == 1 then notes.store('policies') end
  return math.max(1, count)
end

-- Run a portion of the deferred work, at most `most` jobs. Return their number; 0: nothing is left.
function failed_dependencies.run_next(now, most)
  local of = redis.call('SRANDMEMBER', keys.deferred_failures())
  if not of then return 0 end
  local what, jid = string.match(of, '^(%l+):%d+:(.*)$')
  local others = redis.call('SPOP', keys.deferred_jids(of), most)
  local stuck = what == 'stuck' and policies.is_stuck(jid)
  local holds = what == 'canceled' or redis.call('HGET', keys.job(jid), 'state') == 'failed'
  for _, other in ipairs(others) do
    if what == 'mark' then
      policies.mark_through(other)
    elseif what == 'stuck' then
      failed_dependencies.set_stuck(other, jid, stuck, now)
    elseif holds and redis.call('SISMEMBER', keys.dependencies(other), jid) == 1 then
      failed_dependencies.apply(what, jid, other, now)
    end
  end
  if redis.call('EXISTS', keys.deferred_jids(of)) == 0 then
    redis.call('SREM', keys.deferred_failures(), of)
  end
  return math.max(1, #others)
end

-- Note in a job whether a dependency is stuck, if that matters; if it begins or ceases to be stuck
-- itself, its own dependents come later.
function failed_dependencies.set_stuck(jid, other, stuck, now)
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
  if after == 1 then notes.add('stuck', jid) end
  if after ~= before then
    policies.defer('stuck', jid, keys.dependents(jid))
    local set = f[3] and f[1] ~= 'run' and job_constraints.read_set(f[3])
    if set then members.hold(set, jid, after == 1, now) end
  end
end

-- Apply a dependent's policy. If the dependency was canceled, the dependent can never run and is
-- canceled, whatever its policy; but one with the policy `run` no longer waits for it.
function failed_dependencies.apply(what, cause, jid, now)
  local job = record.read(jid)
  if not job or job.state ~= 'depends' then return end
  local choice = redis.call('HGET', keys.job(jid), 'x-if-dependency-fails')
  if choice == 'run' then
    if what == 'canceled' then
      dependency.unlink(jid, {cause})
      notes.add('unblocked', jid)
    end
  elseif choice == 'cancel' or what == 'canceled' then
    policies.defer('canceled', jid, keys.dependents(jid))
    cancellation.delete(job)
  elseif choice == 'fail' then
    dependency.unlink_all(jid)
    local group = redis.call('HGET', keys.job(cause), 'failure')
    local why = 'it depends on job ' .. cause .. ', which failed: '
      .. (json.parse_object(group).group or '')
    failing.fail(job, job.queue .. '-dependency-failed', why, '', now)
  end
end
