-- turns: fair turns. The jobs of a queue that name a tenant (`fair` of their constraints) start in
-- turns, however many each tenant has put: start-time fair queueing. A turn is a time in seconds,
-- and stands in a job's score where others have the time when they came, so that any client's pop
-- takes the earliest. Each priority has turns of its own; a tenant is named `priority:key` here.
--
-- `x:turns` has each tenant's next turn, and as `priority:` the turn that new tenants get; both as
-- scores in `-work`. `x:tenant` has the tenant's jobs that wait or are held back, by these scores.
-- A job's turn, and since when it has been ready, are in its field `x-turn`.

-- From a turn to the tenant's next, with weight 1. Turns run ahead of the clock if more start.
local STEP = 10
-- A tenant that has no turn to wait for gets one right behind the latest such tenant's.
local STEP_OF_NEW = 0.01
local LAST = 9.5e9     -- a turn; a later one would reach into the next priority
local MOST = 1000      -- priorities beyond leave too few digits for turns
local PRUNED = 2

-- The tenant of a job; nil if it takes no turns.
function turns.name_tenant(priority, own)
  if not own.fair or priority % 1 ~= 0 or math.abs(priority) > MOST then return nil end
  return string.format('%d:', priority) .. own.fair
end

function turns.name_marker(priority) return string.format('%d:', priority) end

-- The turn of a new tenant, and the next one of this tenant, if known.
function turns.read_next(queue, priority, tenant, now)
  local found = redis.call('ZMSCORE', keys.turns(queue), turns.name_marker(priority), tenant)
  return found[1] and priority_score.read_since(tonumber(found[1]), priority) or now,
    found[2] and priority_score.read_since(tonumber(found[2]), priority)
end

-- Take the next turn for a job that is ready `since`. Return its score and the text of its field
-- `x-turn`; nil if it takes no turns. `alone`: nothing waits in the queue, so turns are reset.
function turns.take(queue, jid, priority, own, since, now, alone)
  local tenant = turns.name_tenant(priority, own)
  if not tenant then return nil end
  local first, turn
  if alone then
    turns.reset(queue)
    first = now
  else
    first, turn = turns.read_next(queue, priority, tenant, now)
  end
  local marker, new = turns.name_marker(priority), not turn or turn <= first
  turn = math.min(new and first or turn, LAST)
  local score = priority_score.compute(priority, turn)
  local next_score = priority_score.compute(priority, turn + STEP / (own.weight or 1))
  if new then
    redis.call('ZADD', keys.turns(queue), next_score, tenant,
      priority_score.compute(priority, turn + STEP_OF_NEW), marker)
  else
    redis.call('ZADD', keys.turns(queue), next_score, tenant)
  end
  redis.call('ZADD', keys.tenant(queue, tenant), score, jid)
  return score, string.format('%.6f %.6f', turn, since)
end

-- As turns.take, for a job whose constraints are stored; return its score, or nil.
function turns.enter(queue, jid, priority, constraints, since, now)
  local own = job_constraints.read(constraints)
  local score, text = turns.take(queue, jid, priority, own, since, now)
  if score then
    record.set_fields(jid, 'x-turn', text)
  elseif own.fair then
    record.delete_fields(jid, 'x-turn')
  end
  return score
end

-- The turn that a job took, and since when it has been ready.
function turns.parse(text)
  local turn, since = string.match(text or '', '^(%S+) (%S+)$')
  return tonumber(turn), tonumber(since)
end

-- The score of a job at its former place, or at its tenant's next turn if that is earlier; nil if
-- it takes no turns.
function turns.resume(queue, jid, priority, constraints, now)
  local own = job_constraints.read(constraints)
  local tenant = turns.name_tenant(priority, own)
  if not tenant then return nil end
  local turn = turns.parse(redis.call('HGET', keys.job(jid), 'x-turn') or nil)
  if not turn then return turns.enter(queue, jid, priority, constraints, now, now) end
  local first, next_turn = turns.read_next(queue, priority, tenant, now)
  turn = math.min(turn, math.max(first, next_turn or first))
  local score = priority_score.compute(priority, turn)
  redis.call('ZADD', keys.turns(queue), 'NX',
    priority_score.compute(priority, turn + STEP / (own.weight or 1)), tenant)
  redis.call('ZADD', keys.tenant(queue, tenant), score, jid)
  return score
end

-- The score of a job that runs at its former place; nil if it takes no turns.
function turns.find_score(job)
  if not turns.name_tenant(job.priority, job_constraints.read(job.constraints)) then return nil end
  local turn = turns.parse(redis.call('HGET', keys.job(job.jid), 'x-turn') or nil)
  return turn and priority_score.compute(job.priority, turn)
end

-- A job that was popped with this score starts.
function turns.start(queue, job, own, score)
  local priority = tonumber(job.row and job.row[3] or job.priority) or 0
  local tenant = turns.name_tenant(priority, own)
  if not tenant or redis.call('ZREM', keys.tenant(queue, tenant), job.jid) == 0 then return end
  local _, since = turns.parse(job.turn)
  job.ready_since = since
  -- That of a tenant which was new is not later than a new one's now; so what is pruned is bounded
  -- by what comes.
  if redis.call('ZADD', keys.turns(queue), 'LT', 'CH', score, turns.name_marker(priority)) == 0 then
    turns.prune(queue, priority, score)
  elseif redis.call('EXISTS', keys.waiting(queue)) == 0 then
    turns.reset(queue)
  end
end

-- Nothing waits in the queue, so that no tenant is ahead of another.
function turns.reset(queue) redis.call('UNLINK', keys.turns(queue)) end

-- Forget tenants without jobs whose next turn is not later than a new tenant's. One with jobs is as
-- well off with a later turn, which makes way for others here.
function turns.prune(queue, priority, score)
  local old = redis.call('ZRANGE', keys.turns(queue), priority, '(' .. score, 'BYSCORE', 'REV',
    'LIMIT', 0, PRUNED)
  for _, tenant in ipairs(old) do
    local jid = redis.call('ZRANGE', keys.tenant(queue, tenant), -1, -1)[1]
    if not jid then
      redis.call('ZREM', keys.turns(queue), tenant)
    else
      redis.call('ZADD', keys.turns(queue), score, tenant)
      if not turns.is_waiting(queue, jid) then
        redis.call('ZREM', keys.tenant(queue, tenant), jid)
      end
    end
  end
end

-- Whether a job waits in a queue or is held back there. Another client's pop leaves entries behind.
function turns.is_waiting(queue, jid)
  local job = redis.call('HMGET', keys.job(jid), 'queue', 'state')
  return job[1] == queue and (job[2] == 'waiting' or job[2] == 'scheduled')
end

-- A job leaves without having started: what its tenant puts next takes the turn after the latest
-- one of its jobs.
function turns.give_back(job, own)
  local tenant = turns.name_tenant(job.priority, own)
  local jobs = tenant and keys.tenant(job.queue, tenant)
  if not tenant or redis.call('ZREM', jobs, job.jid) == 0 then return end
  local latest = redis.call('ZRANGE', jobs, 0, 0, 'WITHSCORES')[2]
  if latest then
    local turn = priority_score.read_since(tonumber(latest), job.priority) or 0
    redis.call('ZADD', keys.turns(job.queue), 'XX', 'GT',
      priority_score.compute(job.priority, turn + STEP / (own.weight or 1)), tenant)
  else
    redis.call('ZREM', keys.turns(job.queue), tenant)
  end
end

-- A job that waits or is held back gets another priority. Return its score, or nil if it takes no
-- turns there.
function turns.change_priority(job, priority)
  local own = job_constraints.read(job.constraints)
  if not own.fair then return nil end
  turns.give_back(job, own)
  local _, since = turns.parse(redis.call('HGET', keys.job(job.jid), 'x-turn') or nil)
  local ready = since or job.time or 0
  return turns.enter(job.queue, job.jid, priority, job.constraints, ready, ready)
end
