-- calls: jobs that another job, their parent, has put and waits for. A parent's steps have `call:`
-- and the call's name with the child, and `called:` with how it has ended; a child's field
-- `x-parent` names both.

-- Put the child of a running job, once. Return how it has ended, if it has; else its jid.
function calls.put(job, name, text, detach, now)
  local key = keys.steps(job.jid)
  if redis.call('HEXISTS', keys.job(job.jid), 'x-steps') == 0 then steps.begin(job.jid, now) end
  local found = redis.call('HMGET', key, 'called:' .. name, 'call:' .. name)
  if found[1] then return {'called', found[1]} end
  if not found[2] then
    return {'call', calls.put_child(job, key, name, text, detach, now)}
  end
  if not call_outcomes.note_outcome(job, name, found[2], now) then
    return {'call', steps.read_child(found[2]).jid}
  end
  return {'called', redis.call('HGET', key, 'called:' .. name)}
end

-- Its number has never been used, also if the parent was put again meanwhile.
function calls.put_child(job, key, name, text, detach, now)
  local put, options = job_json.parse(text)
  local number = tonumber(redis.call('HGET', keys.job(job.jid), 'x-calls')) or 0
  local prefix = calls.child_prefix(job.jid)
  repeat
    number = number + 1
    put.jid, put.now = string.format('%s-%d', prefix, number), now
  until redis.call('EXISTS', keys.job(put.jid)) == 0
  local entry = cjson.encode({jid = put.jid, detach = detach and true or nil})
  local found = step_entries.read(job, 'call', name)
  step_entries.check_limits(key, name, true, found.size + #entry)
  options.context = options.context or redis.call('HGET', keys.job(job.jid), 'x-context') or nil
  local other = enqueue.write(put, options)
  if other ~= put.jid then
    errors.raise('EXISTS', 'the unique key of the called job is taken', {jid = other})
  end
  record.set_fields(job.jid, 'x-calls', number)
  record.set_fields(put.jid, 'x-parent', json.texts({job.jid, name}))
  step_entries.write(job, 'call', name, entry, now, found)
  return put.jid
end

-- What the jids of a job's children begin with. On partitions, it is the jid in braces, unless it
-- says in another way to which one they belong: it is generated, or has braces, or is a branch's.
function calls.child_prefix(jid)
  local digits = string.match(jid, '^(%x+)[-%d]*$')
  if not string.find(ns, '.{') or string.find(jid, '{[^}]+}')
    or string.find(jid, '-failure-', 1, true) or digits and #digits == constants.JID_DIGITS then
    return jid
  end
  if string.find(jid, '[{}]') then
    errors.bad_argument('jid', jid, 'has a single brace, so that it can call no jobs on partitions')
  end
  return '{' .. jid .. '}'
end

-- A child has ended: store how among the steps of its parent, if that still waits for it, and make
-- the parent due. `drops_result`: the child kept its result for this alone.
function calls.end_child(child, now)
  local of = json.parse_texts(child.parent)
  local job = record.read(of[1])
  local entry = job and redis.call('HGET', keys.steps(of[1]), 'call:' .. of[2])
  if entry and steps.read_child(entry).jid == child.jid then
    local outcome = child.outcome or call_outcomes.look(child.jid)
    if outcome then
      call_outcomes.store_outcome(job, of[2], outcome, now)
      waits.wake(job, 'call:' .. of[2], now)
    end
  end
  if child.drops_result then redis.call('UNLINK', keys.result(child.jid)) end
end

-- Cancel a child of a job that was deleted; it may have children itself.
function calls.cancel_orphan(jid, now)
  local job = record.read(jid)
  if job and job.state ~= 'complete' and redis.call('EXISTS', keys.dependents(jid)) == 0 then
    cancellation.delete(job, false, now)
  end
end
