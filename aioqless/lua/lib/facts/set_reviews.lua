-- set_reviews: find what other qless clients have done to members of job sets, and delete old sets.

local KEPT_FOR = 604800      -- seconds, from the last put or end while none is open
local LOOKS_EVERY = 20       -- seconds between two reviews of a set
local LOOKS_LATER = 600      -- of one without open members
local LOOKS_PER_SECOND = 2000  -- so that a large set is reviewed less often
local PORTION = 500           -- members compared in a call
local COST_OF_REVIEW = 10     -- as many members

-- Find what other qless clients have done to members, a bounded number per call, and delete old
-- sets. Return whether there is more to do now.
function set_reviews.sweep(now)
  local left = PORTION
  while left > 0 do
    local set = redis.call('ZRANGE', keys.set_reviews(), '-inf', now, 'BYSCORE', 'LIMIT', 0, 1)[1]
    if not set then return false end
    left = left - set_reviews.review(set, now)
  end
  return true
end

-- Review a portion of a set; return what it cost.
function set_reviews.review(set, now)
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
