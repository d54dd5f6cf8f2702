-- steps: what the runs of a job have stored for later runs, until the job has ended. The job's
-- field `x-steps` says that there is something, so that jobs without steps cost nothing.

-- A job has its first steps. What an earlier job of this jid has left is deleted.
function steps.begin(jid, now)
  redis.call('UNLINK', keys.steps(jid))
  record.set_fields(jid, 'x-steps', 1)
  notes.schedule('review steps', jid, now + constants.REVIEW_INTERVAL)
end

-- Delete the steps of a job that is complete or canceled, or is put by a new `put`.
function steps.delete(jid)
  record.delete_fields(jid, 'x-steps', 'x-parked')
  redis.call('UNLINK', keys.steps(jid))
  notes.remove('review steps', jid)
end

-- Forget a step, and all that was stored after it.
function steps.forget(jid, name)
  local entries, first = redis.call('HGETALL', keys.steps(jid)), math.huge
  for i = 1, #entries, 2 do
    if string.match(entries[i], '^%l+:(.*)$') == name then
      first = math.min(first, steps.read_number(entries[i + 1]))
    end
  end
  if first == math.huge then errors.bad_argument('from_step', name, 'is not a stored step') end
  for i = 1, #entries, 2 do
    if steps.read_number(entries[i + 1]) >= first and string.find(entries[i], '^%l+:') then
      redis.call('HDEL', keys.steps(jid), entries[i])
      redis.call('HINCRBY', keys.steps(jid), '.size', -#entries[i + 1])
    end
  end
end

-- The number of an entry, which rises with each that is stored.
function steps.read_number(entry) return tonumber(string.match(entry, '^(%d+) ')) or 0 end

-- The value of an entry.
function steps.read_value(entry) return string.match(entry, '^%S+ %S+ %S+ (.*)$') end

-- Whether a job that has steps exists and is not complete.
function steps.are_needed(jid)
  local job = redis.call('HMGET', keys.job(jid), 'state', 'x-steps')
  return job[1] and job[1] ~= 'complete' and job[2]
end

function steps.read_child(entry) return json.parse_object(steps.read_value(entry)) end

-- A job with steps is deleted: note the jobs that it has called: they are canceled.
function steps.note_orphans(jid)
  local entries = redis.call('HGETALL', keys.steps(jid))
  for i = 1, #entries, 2 do
    local child = string.find(entries[i], '^call:') and steps.read_child(entries[i + 1])
    if child and not child.detach then notes.store('orphan', child.jid) end
  end
end
