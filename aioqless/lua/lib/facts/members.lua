-- members: jobs that are members of a job set (keys.set). The constraints of a member begin with
-- the set's number, as `{"set":17`, so that other jobs cost nothing. One that has not ended is in
-- `open`, or in `held` if a failed dependency holds it; one that has, in `failed` or `canceled`, or
-- in none of these if it is complete.

local PLACES = {'open', 'held', 'failed', 'canceled'}

-- Constraints are left without the set, which is gone.
function members.leave(jid, constraints)
  local others = string.match(constraints, '^{"set":%d+,?(.*)$')
  if others == '}' then return record.delete_fields(jid, 'x-constraints') end
  record.set_fields(jid, 'x-constraints', '{' .. others)
end

-- Move a member to where it belongs; `complete`: to none.
function members.move(set, jid, place, now)
  if redis.call('EXISTS', keys.set(set)) == 0 then return end
  if place == 'open' or redis.call('SREM', keys.members(set, 'open'), jid) == 0 then
    for _, other in ipairs(PLACES) do
      if other ~= place then redis.call('SREM', keys.members(set, other), jid) end
    end
  end
  if place ~= 'complete' then redis.call('SADD', keys.members(set, place), jid) end
  if place ~= 'open' then members.note_change(set) end
end

-- A failed dependency holds a member, or no longer does.
function members.hold(set, jid, is_held, now)
  local from, to = is_held and 'open' or 'held', is_held and 'held' or 'open'
  if redis.call('SREM', keys.members(set, from), jid) == 0 then return end
  redis.call('SADD', keys.members(set, to), jid)
  if is_held then members.note_change(set) end
end

-- A set without open members may have ended.
function members.note_change(set)
  if redis.call('EXISTS', keys.members(set, 'open')) == 0 then notes.store('set changed', set) end
end

-- A job was put again, maybe with other constraints: a member stays one, and is open again.
function members.reopen(set, jid, constraints, now)
  if redis.call('EXISTS', keys.set(set)) == 0 then return end
  if constraints then
    record.set_fields(jid, 'x-constraints',
      job_constraints.name_set(redis.call('HGET', keys.job(jid), 'x-constraints'), set))
  end
  members.move(set, jid, 'open', now)
end

-- Compare where a member is listed with its state. A failed one may be deleted by retention.
function members.compare(set, jid, place, now)
  local right = members.find_place(set, jid, place)
  if right ~= place then members.move(set, jid, right, now) end
  return right
end

function members.find_place(set, jid, place)
  local f = redis.call('HMGET', keys.job(jid), 'state', 'x-constraints', 'x-if-dependency-fails')
  if not f[1] or not f[2] or job_constraints.read_set(f[2]) ~= set then
    return place == 'failed' and place or 'canceled'
  end
  if f[1] == 'complete' or f[1] == 'failed' then return f[1] end
  return f[1] == 'depends' and f[3] ~= 'run' and redis.call('EXISTS', keys.stuck(jid)) == 1
    and 'held' or 'open'
end

function members.delete(set, name)
  redis.call('UNLINK', keys.set(set), keys.members(set, 'results'))
  for _, place in ipairs(PLACES) do redis.call('UNLINK', keys.members(set, place)) end
  if name then redis.call('ZREM', keys.sets(), name) end
end

-- The name of the job set that constraints name; else false, for a nil would end the row.
function members.find_name(constraints)
  local set = constraints and job_constraints.read_set(constraints)
  return set and redis.call('HGET', keys.set(set), 'name') or false
end
