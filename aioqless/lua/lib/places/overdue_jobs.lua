-- overdue_jobs: the first job that a limit holds back is overdue when that was for longer than a
-- period: it keeps its share of all its limits from jobs behind it, until it starts. Scores and
-- jids order overdue jobs alike in all keys, so that the first of all gets each of its shares: no
-- job waits forever, and no two wait for each other.

local LOOKS = 20
local KEPT = 60  -- seconds after which a job that is held back no longer keeps its share
local PATIENCE = 60  -- the period of a limit without a rate

-- The limit of the first overdue job of a key, and its jid, if it comes before this one. It keeps
-- nothing once it has run, or while its queue is paused or no worker pops from it.
function overdue_jobs.find_before(key, jid, score, now)
  local first = redis.call('ZRANGE', keys.overdue(key), 0, LOOKS - 1, 'REV', 'WITHSCORES')
  for i = 1, #first, 2 do
    local other, theirs = first[i], tonumber(first[i + 1])
    if other == jid or theirs < score or theirs == score and other < jid then return nil end
    local job = redis.call('HMGET', keys.job(other), 'state', 'x-constraints', 'queue')
    local held = overdue_jobs.read(other)
    local limit = held and job_constraints.find_limit(job_constraints.read(job[2]), key)
    if limit and now < held.kept_until and not queue_sets.is_paused(job[3] or '')
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

-- Since when a job has been held back, and until when it keeps shares; nil if it has run since.
function overdue_jobs.read(jid)
  local job = redis.call('HMGET', keys.job(jid), 'x-held', 'x-fence')
  local fence, since, kept_until = string.match(job[1] or '', '^(%S+) (%S+) (%S+)$')
  if fence ~= (job[2] or '0') then return nil, job[2] or '0' end
  return {since = tonumber(since), kept_until = tonumber(kept_until)}, fence
end

function overdue_jobs.format(fence, since, due)
  return string.format('%s %.6f %.6f', fence, since, due + KEPT)
end
