-- ties: dependencies, as both sides store them, and the notes on what of them is left for later.

local MOST_NOTES = 10

-- The state of a job; nil when there is no job.
function ties.state(jid)
  return redis.call('HGET', keys.job(jid), 'state') or (redis.call('EXISTS', keys.job(jid)) == 1 and '' or nil)
end

-- Whether left-over upkeep of `jid` will yet come to `other`. (With still more notes than are looked at, it comes to it earlier: no harm.)
function ties.noted(what, jid, other)
  for number = 1, MOST_NOTES do
    if redis.call('SISMEMBER', keys.left(what .. ':' .. number .. ':' .. jid), other) == 1 then return true end
  end
  return false
end

function ties.dependencies(here, jid)
  local state = ties.state(jid)
  if here.at == '0' and state and state ~= '' and state ~= 'depends' then
    findings.add('not-held', {jid = jid, state = state}, function() ties.hold(jid, here.now) end)
  end
  return contents.each(here, 'SSCAN', function(other) ties.dependency(jid, state, other, here.now) end)
end

-- A job that is still to run waits for its dependencies; one that runs or is through needs them no more.
function ties.hold(jid, now)
  local job = record.read(jid)
  if job.state == 'waiting' or job.state == 'scheduled' or job.state == 'stalled' then
    local due = redis.call('ZSCORE', keys.scheduled(job.queue), jid)
    place.leave(job.queue, jid)
    place.hold(job.queue, jid, now)
    record.set(jid, 'state', 'depends')
    if due then record.set(jid, 'scheduled', due) end
  else
    dependency.drop_all(jid)
  end
end

function ties.dependency(jid, state, other, now)
  local problem
  local others = ties.state(other)
  if not state then
    problem = 'dependency-without-job'
  elseif not others and ties.noted('canceled', other, jid) then
    return
  elseif other == jid or (not others or others == 'complete') and not ties.noted('release', other, jid) then
    problem = 'dependency-satisfied'
  elseif others and others ~= 'complete' and redis.call('SISMEMBER', keys.dependents(other), jid) == 0 and not ties.noted('release', other, jid) then
    findings.add('one-sided', {jid = jid, dependency = other}, function() redis.call('SADD', keys.dependents(other), jid) end)
  end
  if problem then
    findings.add(problem, {jid = jid, dependency = other}, function()
      dependency.unlink(jid, {other})
      dependency.release(jid, now)
    end)
  end
end

function ties.dependents(here, jid)
  return contents.each(here, 'SSCAN', function(other)
    if redis.call('SISMEMBER', keys.dependencies(other), jid) == 1 or ties.noted('unlink', other, jid) then return end
    findings.add('one-sided', {jid = other, dependency = jid}, function()
      local state = ties.state(jid)
      if ties.state(other) == 'depends' and state and state ~= 'complete' and other ~= jid then
        redis.call('SADD', keys.dependencies(other), jid)
      else
        redis.call('SREM', here.key, other)
      end
    end)
  end)
end

-- A note that can't be read would stop the upkeep of all calls to come.
function ties.readable(note) return string.find(note, '^%l+:%d+:.') ~= nil end

function ties.notes(here)
  return contents.each(here, 'SSCAN', function(note)
    if ties.readable(note) and redis.call('EXISTS', keys.left(note)) == 1 then return end
    findings.add('note-without-rest', {note = note}, function() redis.call('SREM', here.key, note) end)
  end)
end

function ties.rest(here, note)
  if not ties.readable(note) then
    findings.add('rest-without-note', {note = note}, function() redis.call('UNLINK', here.key) end)
  else
    local notes = (string.find(note, '^failed:') or string.find(note, '^canceled:')) and keys.fallen() or keys.todo()
    if redis.call('SISMEMBER', notes, note) == 0 then
      findings.add('rest-without-note', {note = note}, function() redis.call('SADD', notes, note) end)
    end
  end
  return 1
end
