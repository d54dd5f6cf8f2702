-- review: find what other qless clients have done, which know neither steps, nor job sets, nor jobs
-- that failures put. Each subject has a note: what makes the subject schedules it, and each review
-- the next one, while the subject exists. A review of many jobs continues in later calls.

local LOOKS_PER_JOB = 4        -- looking at a job costs less than changing it
local LOOKS_PER_SECOND = 2000  -- so that what is large is reviewed less often
local NOTES_PER_SECOND = 200   -- the same for many jobs with steps
local SELDOM = 600             -- seconds more, at most, for what nothing waits for
local SET_KEPT_FOR = 604800    -- seconds, from the last put or end while none is open
local TOLERANCE = 600          -- seconds by which the clock of another client may be behind
local PAGE = 100

function review.schedule(kind, about, now, later)
  notes.schedule(kind, about, now + constants.REVIEW_INTERVAL + later)
end

-- Delete the steps of a job that is complete or gone. The children of one that is gone are
-- canceled.
function review.review_steps(jid, now)
  if steps.are_needed(jid) then
    local later = math.min(redis.call('ZCARD', keys.agenda()) / NOTES_PER_SECOND, SELDOM)
    return review.schedule('review steps', jid, now, later)
  end
  if redis.call('EXISTS', keys.job(jid)) == 0 then steps.note_orphans(jid) end
  steps.delete(jid)
end

-- Compare a portion of a set's members with their states, or delete an old set. Return the cost: of
-- how many jobs of the agenda.
function review.review_set(set, now, most)
  local f = redis.call('HMGET', keys.set(set), 'name', 'touched', 'review')
  local open = redis.call('SCARD', keys.members(set, 'open'))
  if not f[1] or open == 0 and tonumber(f[2]) + SET_KEPT_FOR < now then
    members.delete(set, f[1])
    return 1
  end
  local place, cursor = string.match(f[3] or 'open 0', '^(%l+) (%d+)$')
  local step = redis.call('SSCAN', keys.members(set, place), cursor, 'COUNT', most * LOOKS_PER_JOB)
  for _, jid in ipairs(step[2]) do members.compare(set, jid, place, now) end
  local following = step[1] == '0' and ({open = 'held', held = 'failed'})[place]
  redis.call('HSET', keys.set(set), 'review', (step[1] ~= '0' and place or following or 'open')
    .. ' ' .. step[1])
  if step[1] ~= '0' or following then
    notes.schedule('review set', set, now)
  else
    review.schedule('review set', set, now, open > 0 and open / LOOKS_PER_SECOND or SELDOM)
  end
  return 1 + math.ceil(#step[2] / LOOKS_PER_JOB)
end

-- Look at a portion of the failed jobs: in each group, those that failed since the previous one.
-- Return the cost.
function review.review_failures(now, most)
  local at = failure_jobs.read_review()
  if not at then return 1 end
  local groups, left = at.groups, most * LOOKS_PER_JOB
  if not groups then
    at.since = math.max(at.used or now, math.min(at.began or now, now) - TOLERANCE)
    at.began, at.looked, at.cursor, at.offset = now, 0, '0', 0
  end
  repeat
    if not groups or #groups == 0 then
      local step = redis.call('SSCAN', keys.failures(), at.cursor, 'COUNT', PAGE)
      at.cursor, groups, left = step[1], step[2], left - 1
    else
      local looked, recent = review.review_group(groups[1], at.offset, at.since, now)
      at.offset, at.looked, left = at.offset + looked, at.looked + looked, left - 1 - looked
      if looked < PAGE or not recent then
        table.remove(groups, 1)
        at.offset = 0
      end
    end
    local has_ended = #groups == 0 and at.cursor == '0'
  until has_ended or left <= 0
  if #groups > 0 or at.cursor ~= '0' then
    at.groups = groups
    notes.schedule('review failures', '', now)
  else
    at.groups = nil
    review.schedule('review failures', '', now, at.looked / LOOKS_PER_SECOND)
  end
  failure_jobs.store_review(at)
  return math.max(1, most - math.floor(left / LOOKS_PER_JOB))
end

-- A page of a group, newest first. Return how many jobs it has, and whether one failed since then.
function review.review_group(group, offset, since, now)
  local jids = redis.call('LRANGE', keys.group(group), offset, offset + PAGE - 1)
  local recent = false
  for _, jid in ipairs(jids) do
    local f = redis.call('HMGET', keys.job(jid), 'x-cascade', 'x-on-failure', 'klass', 'failure',
      'state', 'x-failures', 'time', 'x-follow-up', 'x-constraints', 'queue')
    local when = tonumber(string.match(f[4] or '', '"when":%s*(%-?[%d.]+)')) or 0
    if when >= math.floor(since) then
      recent = true
      local known = string.match(f[6] or '', '^%d+ (.*)$')
      if f[5] == 'failed' and known ~= f[7] then review.catch_up(jid, f, group, when, now) end
    end
  end
  return #jids, recent
end

-- A failure is found that no script of ours stored, or that mattered to nothing at that time.
function review.catch_up(jid, f, group, when, now)
  if f[8] then
    local own = job_constraints.read(f[9])
    if own.debounce then debounce.hand_over(jid, own.unique, now) end
  end
  failure_jobs.note_failure({
    jid = jid, queue = f[10] or '', time = f[7], group = group,
    message = json.to_text(json.parse_object(f[4]).message),
  }, f, when)
end
