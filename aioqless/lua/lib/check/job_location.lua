-- job_location: check that a job is in the set that its state requires, and in no other.

local GROUP = 'found-by-check'
local SETS = {
  work = keys.waiting, scheduled = keys.scheduled, locks = keys.locks, depends = keys.depends,
}
local PLACES = {
  waiting = 'work', stalled = 'work', scheduled = 'scheduled', depends = 'depends',
  running = 'locks', failed = 'group', complete = 'completed',
}
local GUESSES = {
  {'locks', 'running'}, {'work', 'waiting'}, {'scheduled', 'scheduled'}, {'depends', 'depends'},
}
local ABSENT = {locks = 'without-lock', group = 'not-in-group', completed = 'not-in-completed'}

-- The sets of its queue that a job is in, with its scores.
function job_location.read_sets(jid, queue)
  local places = {}
  if queue == '' then return places end
  for name, key in pairs(SETS) do places[name] = redis.call('ZSCORE', key(queue), jid) or nil end
  return places
end

-- The state of a job without a readable one.
function job_location.guess_state(places, queue)
  for _, guess in ipairs(GUESSES) do
    if places[guess[1]] then return guess[2] end
  end
  return queue == '' and 'failed' or 'waiting'
end

-- Return the cost of the check beyond what every job costs.
function job_location.check(jid, job, places, now)
  local right, work = PLACES[job.state], 0
  local there = places[right]
  if SETS[right] and job.queue == '' then
    findings.add('without-queue', {jid = jid, state = job.state},
      function() job_location.fail(jid, job, places, 'The job had no queue', now) end)
    return work
  elseif right == 'group' then
    there, work = failure_groups.has(failures.group_of(job.failure), jid, job.failure)
  elseif right == 'completed' then
    there = redis.call('ZSCORE', keys.completed(), jid)
  elseif job.state == 'waiting' and places.scheduled and not places.work then
    right, there = 'scheduled', true
  end
  local others = {}
  for name in pairs(places) do
    if name ~= right then others[#others + 1] = name end
  end
  if not there or #others > 0 then
    local problem = there and 'in-two-places' or #others > 0 and 'misplaced' or ABSENT[right]
      or 'nowhere'
    findings.add(problem,
      {jid = jid, state = job.state, queue = job.queue, places = others[1] and others}, function()
      for _, name in ipairs(others) do redis.call('ZREM', SETS[name](job.queue), jid) end
      if not there then job_location.place(jid, job, right, now) end
    end)
  end
  if job.state == 'depends' and not dependency.is_blocked(jid) then
    findings.add('held-by-nothing', {jid = jid, queue = job.queue},
      function() dependents.release(jid, now) end)
  end
  if job.constraints then set_members.check_job(jid, job, now) end
  if job.constraints and job.state == 'waiting' and places.work then
    job_location.check_turn(jid, job, now)
  end
  return work
end

function job_location.check_turn(jid, job, now)
  local priority = tonumber(job.priority)
  local tenant = turns.name_tenant(priority, job_constraints.read(job.constraints))
  if not tenant or redis.call('ZSCORE', keys.tenant(job.queue, tenant), jid) then return end
  findings.add('without-turn', {jid = jid, queue = job.queue}, function()
    redis.call('ZADD', keys.waiting(job.queue),
      turns.enter(job.queue, jid, priority, job.constraints, tonumber(job.time), now), jid)
  end)
end

function job_location.place(jid, job, right, now)
  local time, expires = tonumber(job.time), tonumber(job.expires) or now
  if right == 'work' then
    local priority = tonumber(job.priority)
    queue_sets.add_waiting(job.queue, jid, job.state == 'stalled' and '+inf'
      or job.constraints and turns.resume(job.queue, jid, priority, job.constraints, now)
      or priority_score.compute(priority, time))
  elseif right == 'scheduled' then
    queue_sets.add_scheduled(job.queue, jid, tonumber(job.scheduled) or now)
  elseif right == 'depends' then
    queue_sets.add_depending(job.queue, jid, time)
  elseif right == 'locks' and job.worker == '' then
    redis.call('ZADD', keys.locks(job.queue), expires, jid)
  elseif right == 'locks' then
    locks.store(job.queue, jid, job.worker, expires)
  elseif right == 'group' then
    local group = failures.group_of(job.failure)
    redis.call('SADD', keys.failures(), group)
    redis.call('LPUSH', keys.group(group), jid)
  else
    redis.call('ZADD', keys.completed(), time, jid)
  end
end

function job_location.encode_failure(why, worker, now)
  return failures.encode(GROUP, why, worker, now)
end

-- Fail a job that can't continue, so that an operator sees it. `job` and `places` are
-- updated.
function job_location.fail(jid, job, places, why, now)
  if PLACES[job.state] == 'group' or PLACES[job.state] == 'completed' then return end
  dependency.unlink_all(jid)
  if job.worker ~= '' then events.publish_lock_lost(job.worker, jid) end
  failing.fail(record.read(jid), GROUP, why, job.worker, now)
  for name in pairs(SETS) do places[name] = nil end
  job.state, job.failure = 'failed', job_location.encode_failure(why, job.worker, now)
end
