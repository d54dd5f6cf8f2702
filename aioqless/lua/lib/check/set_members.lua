-- set_members: check that members of job sets are listed by their states.

function set_members.check_set(here, set)
  key_entries.check_review(here, 'review set', set)
  return 1
end

function set_members.check_place(here, set, place)
  if redis.call('EXISTS', keys.set(set)) == 0 then
    findings.add('members-without-set', {set = set, place = place},
      function() redis.call('UNLINK', here.key) end)
    return 1
  end
  if place == 'results' then return 1 end
  return key_entries.scan_members(here, 'SSCAN', function(jid)
    local right = members.find_place(set, jid, place)
    if right ~= place then
      findings.add('member-elsewhere', {jid = jid, set = set, place = place, right = right},
        function() members.move(set, jid, right, here.now) end)
    end
  end)
end

-- Check a job that has constraints. One that has ended may be kept for longer than its set.
function set_members.check_job(jid, job, now)
  local set = job_constraints.read_set(job.constraints)
  if not set or job.state == 'complete' or job.state == 'failed' then return end
  if redis.call('EXISTS', keys.set(set)) == 0 then
    findings.add('set-gone', {jid = jid, set = set},
      function() members.leave(jid, job.constraints) end)
  elseif redis.call('SISMEMBER', keys.members(set, 'open'), jid) == 0
    and redis.call('SISMEMBER', keys.members(set, 'held'), jid) == 0 then
    findings.add('member-unlisted', {jid = jid, set = set},
      function() members.move(set, jid, members.find_place(set, jid), now) end)
  end
end
