-- dependency_links: check dependencies, which both sides store, and the notes on deferred work.

local MOST_NOTES = 10

-- The state of a job; nil if there is no job.
function dependency_links.read_state(jid)
  return redis.call('HGET', keys.job(jid), 'state')
    or (redis.call('EXISTS', keys.job(jid)) == 1 and '' or nil)
end

-- Whether deferred work of `jid` will yet visit `other`. (If there are more notes than this reads,
-- the repair comes before the deferred work: no harm.)
function dependency_links.is_deferred(what, jid, other)
  for number = 1, MOST_NOTES do
    if redis.call('SISMEMBER', keys.deferred_jids(what .. ':' .. number .. ':' .. jid),
      other) == 1 then
      return true
    end
  end
  return false
end

function dependency_links.check_dependencies(here, jid)
  local state = dependency_links.read_state(jid)
  if here.at == '0' and state and state ~= '' and state ~= 'depends' then
    findings.add('not-held', {jid = jid, state = state},
      function() dependency_links.block(jid, here.now) end)
  end
  return key_entries.scan_members(here, 'SSCAN',
    function(other) dependency_links.check_dependency(jid, state, other, here.now) end)
end

-- A job that is still to run is held by its dependencies; one that runs or has ended loses them.
function dependency_links.block(jid, now)
  local job = record.read(jid)
  if job.state == 'waiting' or job.state == 'scheduled' or job.state == 'stalled' then
    local due = redis.call('ZSCORE', keys.scheduled(job.queue), jid)
    queue_sets.remove(job.queue, jid)
    queue_sets.add_depending(job.queue, jid, now)
    record.set_fields(jid, 'state', 'depends')
    if due then record.set_fields(jid, 'scheduled', due) end
  else
    dependency.unlink_all(jid)
  end
end

function dependency_links.check_dependency(jid, state, other, now)
  local problem
  local others = dependency_links.read_state(other)
  if not state then
    problem = 'dependency-without-job'
  elseif not others and dependency_links.is_deferred('canceled', other, jid) then
    return
  elseif other == jid
    or (not others or others == 'complete')
    and not dependency_links.is_deferred('release', other, jid) then
    problem = 'dependency-satisfied'
  elseif others and others ~= 'complete'
    and redis.call('SISMEMBER', keys.dependents(other), jid) == 0
    and not dependency_links.is_deferred('release', other, jid) then
    findings.add('one-sided', {jid = jid, dependency = other},
      function() redis.call('SADD', keys.dependents(other), jid) end)
  end
  if problem then
    findings.add(problem, {jid = jid, dependency = other}, function()
      dependency.unlink(jid, {other})
      dependents.release(jid, now)
    end)
  end
end

function dependency_links.check_dependents(here, jid)
  return key_entries.scan_members(here, 'SSCAN', function(other)
    if redis.call('SISMEMBER', keys.dependencies(other), jid) == 1
      or dependency_links.is_deferred('unlink', other, jid) then
      return
    end
    findings.add('one-sided', {jid = other, dependency = jid}, function()
      local state = dependency_links.read_state(jid)
      if dependency_links.read_state(other) == 'depends' and state and state ~= 'complete'
        and other ~= jid then
        redis.call('SADD', keys.dependencies(other), jid)
      else
        redis.call('SREM', here.key, other)
      end
    end)
  end)
end

-- A note that can't be parsed would break deferred work in all future calls.
function dependency_links.is_readable(note) return string.find(note, '^%l+:%d+:.') ~= nil end

function dependency_links.check_notes(here)
  return key_entries.scan_members(here, 'SSCAN', function(note)
    if dependency_links.is_readable(note)
      and redis.call('EXISTS', keys.deferred_jids(note)) == 1 then
      return
    end
    findings.add('note-without-rest', {note = note},
      function() redis.call('SREM', here.key, note) end)
  end)
end

function dependency_links.check_deferred_jids(here, note)
  if not dependency_links.is_readable(note) then
    findings.add('rest-without-note', {note = note}, function() redis.call('UNLINK', here.key) end)
  else
    local notes = (string.find(note, '^release:') or string.find(note, '^unlink:'))
      and keys.deferred() or keys.deferred_failures()
    if redis.call('SISMEMBER', notes, note) == 0 then
      findings.add('rest-without-note', {note = note},
        function() redis.call('SADD', notes, note) end)
    end
  end
  return 1
end

function dependency_links.check_stuck(here, jid)
  return key_entries.scan_members(here, 'SSCAN', function(other)
    if redis.call('SISMEMBER', keys.dependencies(jid), other) == 1 then return end
    findings.add('stuck-without-dependency', {jid = jid, dependency = other},
      function() redis.call('SREM', here.key, other) end)
  end)
end
