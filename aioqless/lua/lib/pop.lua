-- pop: which jobs a worker gets, and the locks on them.

local MOST = 1000
local MOST_HELD_BACK = 50
local cut_short
local rows = {}

-- Make ready what has become due in a queue.
function pop.prepare(queue, now, wanted)
  recurring_spawn.run(queue, now, wanted)
  queue_sets.move_due(queue, now, wanted)
end

-- Lock up to `count` jobs of a queue for a worker: those whose lock ran out first, then the waiting.
-- Returns their jids, in the order in which they are to run.
function pop.take(queue, worker, count, now)
  if count <= 0 or redis.call('SISMEMBER', keys.paused(), queue) == 1 then return {} end
  pop.register_worker(worker, now)
  count = math.min(count, MOST, pop.read_capacity(queue, now))
  local jobs, lapsed = {}, locks.find_expired(queue, now, count)
  for _, jid in ipairs(lapsed) do
    local job = locks.expire(queue, jid, now)
    if job and pop.may_start(queue, job, priority_score.compute(job.priority, job.put or now), now) then jobs[#jobs + 1] = job end
  end
  cut_short = cut_short or #lapsed == count and #jobs < count
  local held_back = 0
  repeat
    local wanted = count - #jobs
    if wanted > 0 then pop.prepare(queue, now, wanted) end
    local top = wanted > 0 and redis.call('ZPOPMAX', keys.waiting(queue), wanted) or {}
    for i = 1, #top, 2 do
      local job = record.read_whole(top[i])
      if job and pop.may_start(queue, job, top[i + 1], now) then jobs[#jobs + 1] = job elseif job then held_back = held_back + 1 end
    end
    local more = #top == 2 * wanted and #jobs < count
    cut_short = cut_short or more and held_back >= MOST_HELD_BACK
  until not more or held_back >= MOST_HELD_BACK
  return pop.lock(queue, jobs, worker, now)
end

-- How many may start in a queue now.
function pop.read_capacity(queue, now)
  local rate = config.queue(queue).rate
  return math.min(locks.read_capacity(queue, now), rate and rates.read_capacity('q:' .. queue, rate, now) or math.huge)
end

-- Whether the next in line may be handed out; what may not is held back, behind nobody's way.
function pop.may_start(queue, job, score, now)
  if not job.terms or limits.admit(job, queue, score, now) then return true end
  redis.call('ZREM', keys.locks(queue), job.jid)
  return false
end

-- Whether some queue may have more to give than this call had the time to find.
function pop.was_cut_short() return cut_short end

function pop.lock(queue, jobs, worker, now)
  if #jobs == 0 then return {} end
  local fence = redis.call('INCRBY', keys.fence(), #jobs) - #jobs
  local expires = json.number(locks.compute_expiry(queue, now))
  local popped = cjson.encode({worker = worker})
  local jids, locked = {}, {}
  for i, job in ipairs(jobs) do
    history.append(job.jid, job, now, 'popped', popped)
    stats.add('wait', queue, now, now - (job.time or now))
    record.set_fields(job.jid, 'state', 'running', 'worker', worker, 'expires', expires, 'time', record.format_time(now),
      'x-put', job.time_text or record.format_time(now), 'x-fence', json.number(fence + i))
    events.publish_tracked('popped', job.jid)
    if job.stored then rows[job.jid] = pop.row(job, worker, expires, json.number(fence + i)) end
    jids[i] = job.jid
    locked[2 * i - 1], locked[2 * i] = expires, job.jid
  end
  redis.call('ZADD', keys.locks(queue), unpack(locked))
  redis.call('ZADD', keys.worker_jobs(worker), unpack(locked))
  local rate = config.queue(queue).rate
  if rate then rates.record_starts('q:' .. queue, rate, jids, now) end
  return jids
end

-- What view.list_rows would read again.
function pop.row(job, worker, expires, fence)
  local f, rare = job.stored, job.rare
  return {
    job.jid, 'running', worker, f[10], f[3], f[11], f[5], f[6], f[7], expires, f[9], rare[1] or false, rare[8] or false, fence,
    rare[9] or false, rare[10] or false,
  }
end

-- The row of a job that this call has locked, where it is at hand.
function pop.find_row(jid) return rows[jid] end

local met = {}

-- A worker that asks for work is known from then on; those that have been silent for too long are forgotten.
function pop.register_worker(worker, now)
  if met[worker] then return end
  met[worker] = true
  redis.call('ZADD', keys.workers(), now, worker)
  for _, silent in ipairs(redis.call('ZRANGE', keys.workers(), '-inf', now - config.number('max-worker-age'), 'BYSCORE', 'LIMIT', 0, 10)) do
    redis.call('UNLINK', keys.worker_jobs(silent))
    redis.call('ZREM', keys.workers(), silent)
  end
end

-- How many jobs of a queue a pop could hand out now.
function pop.count_available(queue, now)
  if redis.call('SISMEMBER', keys.paused(), queue) == 1 then return 0 end
  return redis.call('ZCOUNT', keys.locks(queue), '-inf', now) + redis.call('ZCARD', keys.waiting(queue))
    + queue_sets.count_due(queue, now) + redis.call('ZCOUNT', keys.recurring(queue), '-inf', now)
end
