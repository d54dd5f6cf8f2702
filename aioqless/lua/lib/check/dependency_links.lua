-- dependency_links: check dependencies, which both sides store, and the notes on them.

local MOST_NOTES = 10

-- The state of a job; nil if there is no job.
function dependency_links.read_state(jid)
  return redis.call('HGET', keys.job(jid), 'state')
    or (redis.call('EXISTS', keys.job(jid)) == 1 and '' or nil)
end

-- Whether a note of `jid` is about `other`. (If there are more notes than this reads, the repair
-- comes before what is noted: no harm.)
function dependency_links.is_noted(what, jid, other)
  for number = 1, MOST_NOTES do
    if redis.call('SISMEMBER', keys.noted_jids(what .. ':' .. number .. ':' .. jid),
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
  elseif not others and dependency_links.is_noted('canceled', other, jid) then
    return
  elseif other == jid
    or (not others or others == 'complete')
    and not dependency_links.is_noted('release', other, jid) then
    problem = 'dependency-satisfied'
  elseif others and others ~= 'complete'
    and redis.call('SISMEMBER', keys.dependents(other), jid) == 0
    and not dependency_links.is_noted('release', other, jid) then
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
      or dependency_links.is_noted('unlink', other, jid) then
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

-- The kind of the note whose set of jids has this name; nil if it can't be parsed.
function dependency_links.find_kind(of)
  local what = string.match(of, '^(%l+):%d+:.')
  return what and (what == 'release' or what == 'unlink') and 'links' or what and 'policies'
end

function dependency_links.check_agenda(here)
  return key_entries.scan_members(here, 'ZSCAN', function(text)
    local note = json.parse_object(text)
    local of = (note.kind == 'links' or note.kind == 'policies') and tostring(note.about)
    if note.kind and not of or of and dependency_links.find_kind(of) == note.kind
      and redis.call('EXISTS', keys.noted_jids(of)) == 1 then
      return
    end
    findings.add('note-without-rest', {note = text}, key_entries.remove(here, text))
  end)
end

function dependency_links.check_noted_jids(here, of)
  local kind = dependency_links.find_kind(of)
  if not kind then
    findings.add('rest-without-note', {note = of}, function() redis.call('UNLINK', here.key) end)
  elseif not redis.call('ZSCORE', keys.agenda(), notes.encode(kind, of)) then
    findings.add('rest-without-note', {note = of}, function() notes.store(kind, of) end)
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
