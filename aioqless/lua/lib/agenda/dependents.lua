-- dependents: release the jobs that waited for others.

-- Release the jobs that only waited for these completed ones; many of them are noted. Most jobs
-- have no dependents.
function dependents.release_all(jids, now)
  local sets = {}
  for i, jid in ipairs(jids) do sets[i] = keys.dependents(jid) end
  if redis.call('EXISTS', unpack(sets)) == 0 then return end
  local function release(jid) dependents.release(jid, now) end
  for i, jid in ipairs(jids) do dependency.take_all('release', jid, sets[i], release) end
end

-- Move a job without any dependency left to its place in the queue, respecting a remembered delay.
function dependents.release(jid, now)
  local dependencies = keys.dependencies(jid)
  -- They are named twice, so that the count tells the two apart.
  local found = redis.call('EXISTS', dependencies, dependencies, keys.stuck(jid))
  if found == 3 then return dependents.release_stuck(jid, now) end
  if found == 2 then return end
  local job = record.read(jid)
  if not job or job.state ~= 'depends' or job.queue == '' then return end
  redis.call('ZREM', keys.depends(job.queue), jid)
  local state = placement.add(job.queue, jid, job.priority, job.scheduled, now,
    job.constraints)
  record.set_fields(jid, 'state', state)
  record.delete_fields(jid, 'scheduled')
  local set = job.constraints and job_constraints.read_set(job.constraints)
  if set then members.hold(set, jid, false, now) end
end

-- Release a job with the policy `run` if none of its dependencies can complete. It waits for none
-- of them again.
function dependents.release_stuck(jid, now)
  if redis.call('HGET', keys.job(jid), 'x-if-dependency-fails') == 'run'
    and redis.call('SCARD', keys.stuck(jid)) == redis.call('SCARD', keys.dependencies(jid)) then
    dependency.unlink_all(jid)
    dependents.release(jid, now)
  end
end

-- Release at most `most` more jobs `of` a note, or unlink dependencies; return their number, at
-- least 1.
function dependents.run(of, now, most)
  return math.max(1,
    dependency.run_portion(of, most, function(jid) dependents.release(jid, now) end))
end
