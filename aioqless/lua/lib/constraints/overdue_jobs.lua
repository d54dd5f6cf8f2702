-- overdue_jobs: the first job that a limit holds back is overdue when that was for longer than a
-- period: it keeps its share of all its limits from jobs behind it, until it starts. Scores and
-- jids order overdue jobs alike in all keys, so that the first of all gets each of its shares: no
-- job waits forever, and no two wait for each other.

local LOOKS = 20
local PATIENCE = 60  -- the period of a limit without a rate

-- The limit of the first overdue job of a key, and its jid, if it comes before this one. It keeps
-- nothing once it has run, or while its queue is paused or no worker pops from it.
function overdue_jobs.find_before(key, jid, score, now)
  local first = redis.call('ZRANGE', keys.overdue(key), 0, LOOKS - 1, 'REV', 'WITHSCORES')
  for i = 1, #first, 2 do
    local other, theirs = first[i], tonumber(first[i + 1])
    if other == jid or theirs < score or theirs == score and other < jid then return nil end
    local job = redis.call('HMGET', keys.job(other), 'state', 'x-constraints', 'queue')
    local held = held_jobs.read(other)
    local limit = held and limits.find(job_constraints.read(job[2]), key)
    if limit and now < held.kept_until and not pop.is_paused(job[3] or '')
      and (job[1] == 'scheduled' or job[1] == 'waiting') then
      return limit, other
    end
  end
  return nil
end

-- The first job of a list that is refused is overdue once it was held back for long.
function overdue_jobs.note(own, limit, jid, score, since, now)
  if now < since + (limit.rate and limit.rate[2] or PATIENCE) then return end
  for _, each in ipairs(own.limits) do redis.call('ZADD', keys.overdue(each.key), score, jid) end
end
