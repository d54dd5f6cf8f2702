-- members: jobs that are members of a job set (keys.set). The constraints of a member begin with
-- the set's number, as `{"set":17`, so that other jobs cost nothing. One that has not ended is in
-- `open`, or in `held` if a failed dependency holds it; one that has, in `failed` or `canceled`, or
-- in none of these if it is complete.

local PLACES = {'open', 'held', 'failed', 'canceled'}
local KEPT_FOR = 604800      -- seconds, from the last put or end while none is open
local LOOKS_EVERY = 20       -- seconds between two reviews of a set
local LOOKS_LATER = 600      -- of one without open members
local LOOKS_PER_SECOND = 2000  -- so that a large set is reviewed less often
local PORTION = 500           -- members compared in a call
local COST_OF_REVIEW = 10     -- as many members

-- The number of the set that a job's constraints name, if any.
function members.read_set(constraints) return string.match(constraints, '^{"set":(%d+)') end

-- Constraints as JSON, with the number of a set.
function members.name_set(constraints, set)
  local others = string.match(constraints or '', '^{"set":%d+,?(.*)$')
    or string.match(constraints or '', '^{(.*)$') or '}'
  return '{"set":' .. set .. (others == '}' and '' or ',') .. others
end

-- Constraints are left without the set, which is gone.
function members.leave(jid, constraints)
  local others = string.match(constraints, '^{"set":%d+,?(.*)$')
  if others == '}' then return record.delete_fields(jid, 'x-constraints') end
  record.set_fields(jid, 'x-constraints', '{' .. others)
end

-- Move a member to where it belongs; `complete`: to none. Put what the set's end puts.
function members.move(set, jid, place, now)
  if redis.call('EXISTS', keys.set(set)) == 0 then return end
  if place == 'open' or redis.call('SREM', keys.members(set, 'open'), jid) == 0 then
    for _, other in ipairs(PLACES) do
      if other ~= place then redis.call('SREM', keys.members(set, other), jid) end
    end
  end
  if place ~= 'complete' then redis.call('SADD', keys.members(set, place), jid) end
  if place ~= 'open' then members.react(set, now) end
end

-- A failed dependency holds a member, or no longer does.
function members.hold(set, jid, is_held, now)
  local from, to = is_held and 'open' or 'held', is_held and 'held' or 'open'
  if redis.call('SREM', keys.members(set, from), jid) == 0 then return end
  redis.call('SADD', keys.members(set, to), jid)
  if is_held then members.react(set, now) end
end

-- A job was put again, maybe with other constraints: a member stays one, and is open again.
function members.reopen(set, jid, constraints, now)
  if redis.call('EXISTS', keys.set(set)) == 0 then return end
  if constraints then
    record.set_fields(jid, 'x-constraints',
      members.name_set(redis.call('HGET', keys.job(jid), 'x-constraints'), set))
  end
  members.move(set, jid, 'open', now)
end

-- Put the callbacks of a closed set without open members, each once.
function members.react(set, now)
  if redis.call('EXISTS', keys.members(set, 'open')) == 1 then return end
  local key = keys.set(set)
  local f = redis.call('HMGET', key, 'closed', 'name', 'then', 'when_ended')
  redis.call('HSET', key, 'touched', string.format('%.6f', now))
  if not f[1] then return end
  if f[3] and redis.call('EXISTS', keys.members(set, 'held'), keys.members(set, 'failed'),
    keys.members(set, 'canceled')) == 0 then
    redis.call('HDEL', key, 'then')
    redis.call('HSET', key, 'then_jid', members.put(f[3], f[2] .. '-then-', set, now))
  end
  if f[4] then
    redis.call('HDEL', key, 'when_ended')
    redis.call('HSET', key, 'ended_jid',
      members.put(f[4], f[2] .. '-ended-', set, now + 0.000001))
  end
end

-- Put a callback; return its jid.
function members.put(text, prefix, number, now)
  local put, options = branches.parse(text)
  while redis.call('EXISTS', keys.job(string.format('%s%d', prefix, number))) == 1 do
    number = number * 2
  end
  put.jid, put.now = string.format('%s%d', prefix, number), now
  return enqueue.write(put, options)
end

-- Find what other qless clients have done to members, a bounded number per call, and delete old
-- sets. Return whether there is more to do now.
function members.sweep(now)
  local left = PORTION
  while left > 0 do
    local set = redis.call('ZRANGE', keys.set_reviews(), '-inf', now, 'BYSCORE', 'LIMIT', 0, 1)[1]
    if not set then return false end
    left = left - members.review(set, now)
  end
  return true
end

-- Review a portion of a set; return what it cost.
function members.review(set, now)
  local key = keys.set(set)
  local f = redis.call('HMGET', key, 'name', 'touched', 'review')
  local open = redis.call('SCARD', keys.members(set, 'open'))
  if not f[1] or open == 0 and tonumber(f[2]) + KEPT_FOR < now then
    members.delete(set, f[1])
    return COST_OF_REVIEW
  end
  local place, cursor = string.match(f[3] or 'open 0', '^(%l+) (%d+)$')
  local step = redis.call('SSCAN', keys.members(set, place), cursor, 'COUNT', PORTION)
  for _, jid in ipairs(step[2]) do members.compare(set, jid, place, now) end
  local due, following = now, step[1] == '0' and ({open = 'held', held = 'failed'})[place]
  if step[1] == '0' and not following then
    due = now + (open > 0 and LOOKS_EVERY + open / LOOKS_PER_SECOND or LOOKS_LATER)
  end
  redis.call('HSET', key, 'review', (step[1] ~= '0' and place or following or 'open') .. ' '
    .. step[1])
  redis.call('ZADD', keys.set_reviews(), due, set)
  return COST_OF_REVIEW + #step[2]
end

-- Compare where a member is listed with its state. A failed one may be deleted by retention.
function members.compare(set, jid, place, now)
  local right = members.find_place(set, jid, place)
  if right ~= place then members.move(set, jid, right, now) end
  return right
end

function members.find_place(set, jid, place)
  local f = redis.call('HMGET', keys.job(jid), 'state', 'x-constraints', 'x-if-dependency-fails')
  if not f[1] or not f[2] or members.read_set(f[2]) ~= set then
    return place == 'failed' and place or 'canceled'
  end
  if f[1] == 'complete' or f[1] == 'failed' then return f[1] end
  return f[1] == 'depends' and f[3] ~= 'run' and redis.call('EXISTS', keys.stuck(jid)) == 1
    and 'held' or 'open'
end

function members.delete(set, name)
  redis.call('UNLINK', keys.set(set), keys.members(set, 'results'))
  for _, place in ipairs(PLACES) do redis.call('UNLINK', keys.members(set, place)) end
  redis.call('ZREM', keys.set_reviews(), set)
  if name then redis.call('ZREM', keys.sets(), name) end
end
