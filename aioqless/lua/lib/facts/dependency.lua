-- dependency: which jobs wait for which. Each pair is stored on both sides.

local PORTION = 100
local MOST_RELEASES = 1000  -- of a call

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
    policies.note_all('stuck', jid, keys.dependents(jid))
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

-- Drop all dependencies of a job; many of them in later calls.
function dependency.unlink_all(jid)
  if redis.call('EXISTS', keys.dependencies(jid)) == 0 then return end
  if redis.call('UNLINK', keys.stuck(jid)) == 1 then
    policies.note_all('stuck', jid, keys.dependents(jid))
  end
  dependency.take_all('unlink', jid, keys.dependencies(jid))
end

-- Take a whole set away from its job, process a portion, and note what is left. That has a number,
-- since the job may come back and leave another set before the first is finished. `release`: what
-- is done with a job that no longer waits for this one.
function dependency.take_all(what, jid, from, release)
  if redis.call('EXISTS', from) == 0 then return end
  local number = 1
  while redis.call('RENAMENX', from,
    keys.noted_jids(what .. ':' .. number .. ':' .. jid)) == 0 do
    number = number + 1
  end
  dependency.run_portion(what .. ':' .. number .. ':' .. jid, PORTION, release)
end

-- Process a portion `of` such a set, within the bounds of this call; return the number of jobs.
-- Pairs that have been linked again since are left alone.
function dependency.run_portion(of, most, release)
  local what, jid = string.match(of, '^(%l+):%d+:(.*)$')
  local left = call.releases_left or MOST_RELEASES
  most = math.min(most, left)
  local others = redis.call('SPOP', keys.noted_jids(of), most)
  call.releases_left = left - #others
  for _, other in ipairs(others) do
    if what == 'release' and redis.call('SISMEMBER', keys.dependents(jid), other) == 0 then
      redis.call('SREM', keys.dependencies(other), jid)
      release(other)
    elseif what == 'unlink' and redis.call('SISMEMBER', keys.dependencies(jid), other) == 0 then
      redis.call('SREM', keys.dependents(other), jid)
    end
  end
  if #others == most and redis.call('EXISTS', keys.noted_jids(of)) == 1 then
    notes.store('links', of)
  end
  return #others
end
