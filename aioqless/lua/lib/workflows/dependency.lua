-- dependency: which jobs wait for which. Each pair is stored on both sides.

local PORTION = 200
local MOST_RELEASES = 1000

-- Link a job to those of `jids` that exist and aren't complete; the others count as done.
function dependency.link(jid, jids)
  for _, other in ipairs(jids) do
    local found = redis.pcall('HMGET', keys.job(other), 'state')
    if found.err then record.check_type(other) end
    local state = found[1]
    if state and state ~= 'complete' then
      redis.call('SADD', keys.dependencies(jid), other)
      redis.call('SADD', keys.dependents(other), jid)
    end
  end
end

function dependency.unlink(jid, jids)
  local was_stuck = redis.call('EXISTS', keys.stuck(jid)) == 1
  for _, other in ipairs(jids) do
    redis.call('SREM', keys.dependencies(jid), other)
    redis.call('SREM', keys.dependents(other), jid)
    if was_stuck then redis.call('SREM', keys.stuck(jid), other) end
  end
  if was_stuck and redis.call('EXISTS', keys.stuck(jid)) == 0 then
    cascade.defer('stuck', jid, keys.dependents(jid))
  end
end

function dependency.is_blocked(jid) return redis.call('EXISTS', keys.dependencies(jid)) == 1 end

-- Refuse a job that depends on itself.
function dependency.check_not_itself(jid, jids)
  for _, other in ipairs(jids) do
    if other == jid then
      errors.bad_argument('depends', other, 'is the job itself, which could never run')
    end
  end
end

-- Refuse jobs to wait for that don't exist, unless they count as done. `known`: jids that this call
-- is about to put.
function dependency.check_missing(choice, jids, known)
  if choice ~= 'done' and choice ~= 'refuse' then
    errors.bad_argument('missing', choice, 'must be done or refuse')
  end
  for _, jid in ipairs(choice == 'refuse' and jids or {}) do
    if not (known and known[jid]) and redis.call('EXISTS', keys.job(jid)) == 0 then
      errors.raise('NOJOB', 'the job to wait for is unknown: it never existed, or it was deleted'
        .. ' after it had completed', {jid = jid})
    end
  end
end

-- Drop all dependencies of a job; many of them are deferred to later calls.
function dependency.unlink_all(jid)
  if redis.call('EXISTS', keys.dependencies(jid)) == 0 then return end
  if redis.call('UNLINK', keys.stuck(jid)) == 1 then
    cascade.defer('stuck', jid, keys.dependents(jid))
  end
  dependency.defer('unlink', jid, keys.dependencies(jid), nil)
end

-- Release the jobs that only waited for these completed ones; many of them are deferred. Most jobs
-- have no dependents.
function dependency.release_dependents(jids, now)
  local sets = {}
  for i, jid in ipairs(jids) do sets[i] = keys.dependents(jid) end
  if redis.call('EXISTS', unpack(sets)) == 0 then return end
  for i, jid in ipairs(jids) do dependency.defer('release', jid, sets[i], now) end
end

-- Take a whole set away from its job, process a portion, and leave a note on the rest. The note has
-- a number, since the job may come back and leave another set before the first is finished.
function dependency.defer(what, jid, from, now)
  if redis.call('EXISTS', from) == 0 then return end
  local number = 1
  while redis.call('RENAMENX', from,
    keys.deferred_jids(what .. ':' .. number .. ':' .. jid)) == 0 do
    number = number + 1
  end
  dependency.run_portion(what .. ':' .. number .. ':' .. jid, now, PORTION)
end

-- Move a job without any dependency left to its place in the queue, respecting a remembered delay.
function dependency.release(jid, now)
  local dependencies = keys.dependencies(jid)
  -- They are named twice, so that the count tells the two apart.
  local found = redis.call('EXISTS', dependencies, dependencies, keys.stuck(jid))
  if found == 3 then return dependency.release_stuck(jid, now) end
  if found == 2 then return end
  local job = record.read(jid)
  if not job or job.state ~= 'depends' or job.queue == '' then return end
  redis.call('ZREM', keys.depends(job.queue), jid)
  local state = queue_sets.add(job.queue, jid, job.priority, job.scheduled, now,
    job.constraints)
  record.set_fields(jid, 'state', state)
  record.delete_fields(jid, 'scheduled')
  local set = job.constraints and members.read_set(job.constraints)
  if set then members.hold(set, jid, false, now) end
end

-- Release a job with the policy `run` if none of its dependencies can complete. It waits for none
-- of them again.
function dependency.release_stuck(jid, now)
  if redis.call('HGET', keys.job(jid), 'x-if-dependency-fails') == 'run'
    and redis.call('SCARD', keys.stuck(jid)) == redis.call('SCARD', keys.dependencies(jid)) then
    dependency.unlink_all(jid)
    dependency.release(jid, now)
  end
end

-- Run work that earlier calls deferred.
function dependency.run_deferred(now)
  local most = PORTION
  while most > 0 and (call.releases_left or MOST_RELEASES) > 0 do
    local note = redis.call('SRANDMEMBER', keys.deferred())
    if not note then return end
    most = most - math.max(1, dependency.run_portion(note, now, most))
  end
end

-- Run a portion of the work that a note describes, within the bounds of this call; return the
-- number of jobs. Pairs that have been linked again since are left alone.
function dependency.run_portion(note, now, most)
  local what, jid = string.match(note, '^(%l+):%d+:(.*)$')
  local left = call.releases_left or MOST_RELEASES
  local others = redis.call('SPOP', keys.deferred_jids(note), math.min(most, left))
  call.releases_left = left - #others
  for _, other in ipairs(others) do
    if what == 'release' and redis.call('SISMEMBER', keys.dependents(jid), other) == 0 then
      redis.call('SREM', keys.dependencies(other), jid)
      dependency.release(other, now)
    elseif what == 'unlink' and redis.call('SISMEMBER', keys.dependencies(jid), other) == 0 then
      redis.call('SREM', keys.dependents(other), jid)
    end
  end
  if redis.call('EXISTS', keys.deferred_jids(note)) == 1 then
    redis.call('SADD', keys.deferred(), note)
    presence.add('deferred')
  else
    redis.call('SREM', keys.deferred(), note)
  end
  return #others
end
