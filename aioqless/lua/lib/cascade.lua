-- cascade: apply the policies (`if_dependency_fails`) of jobs whose dependency has failed. Without
-- a policy they stay held.

local CHOICES = {hold = true, fail = true, cancel = true}
local PORTION = 200

function cascade.check_policy(choice)
  if choice and not CHOICES[choice] then
    errors.bad_argument('if_dependency_fails', choice, 'must be hold, fail or cancel')
  end
end

-- Set a job's policy, and mark its dependencies, so that only failures that matter to a dependent
-- cost anything.
function cascade.set_policy(jid, choice)
  if not choice or choice == 'hold' then
    return record.delete_fields(jid, 'x-if-dependency-fails')
  end
  record.set_fields(jid, 'x-if-dependency-fails', choice)
  for _, other in ipairs(redis.call('SMEMBERS', keys.dependencies(jid))) do
    local state = redis.call('HGET', keys.job(other), 'state')
    if state then record.set_fields(other, 'x-cascade', 1) end
    if state == 'failed' then cascade.defer('failed', other, keys.dependents(other)) end
  end
end

-- Set the policy of one job, and apply it if a dependency has failed before.
function cascade.apply_policy(jid, choice, now)
  cascade.set_policy(jid, choice)
  cascade.run_deferred(now)
end

-- Defer applying the policies after a failure, or after a cancellation that one caused.
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
  local holds = what == 'canceled' or redis.call('HGET', keys.job(jid), 'state') == 'failed'
  for _, other in ipairs(others) do
    if holds and redis.call('SISMEMBER', keys.dependencies(other), jid) == 1 then
      cascade.apply(what, jid, other, now)
    end
  end
  if redis.call('EXISTS', keys.deferred_jids(note)) == 0 then
    redis.call('SREM', keys.deferred_failures(), note)
  end
  return #others
end

-- Apply a dependent's policy. If the dependency was canceled, the dependent can never run and is
-- canceled, whatever its policy.
function cascade.apply(what, cause, jid, now)
  local job = record.read(jid)
  if not job or job.state ~= 'depends' then return end
  local choice = what == 'canceled' and 'cancel'
    or redis.call('HGET', keys.job(jid), 'x-if-dependency-fails')
  if choice == 'fail' then
    dependency.unlink_all(jid)
    local group = redis.call('HGET', keys.job(cause), 'failure')
    local why = 'it depends on job ' .. cause .. ', which failed: '
      .. (json.parse_object(group).group or '')
    failures.fail(job, job.queue .. '-dependency-failed', why, '', now)
  elseif choice == 'cancel' then
    cascade.defer('canceled', jid, keys.dependents(jid))
    cancellation.delete(job)
  end
end
