-- failed_dependencies: apply the policies of jobs whose dependency has failed.

local THROUGH_OTHERS = '2'  -- of x-cascade

-- Do what follows for at most `most` of the jobs `of` a note; return their number, at least 1.
function failed_dependencies.run(of, now, most)
  local what, jid = string.match(of, '^(%l+):%d+:(.*)$')
  local others = redis.call('SPOP', keys.noted_jids(of), most)
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
  if redis.call('EXISTS', keys.noted_jids(of)) == 1 then notes.store('policies', of) end
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
    policies.note_all('stuck', jid, keys.dependents(jid))
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
    policies.note_all('canceled', jid, keys.dependents(jid))
    cancellation.delete(job)
  elseif choice == 'fail' then
    dependency.unlink_all(jid)
    local group = redis.call('HGET', keys.job(cause), 'failure')
    local why = 'it depends on job ' .. cause .. ', which failed: '
      .. (json.parse_object(group).group or '')
    failing.fail(job, job.queue .. '-dependency-failed', why, '', now)
  end
end
