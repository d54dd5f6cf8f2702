-- pop: select the next jobs of a queue, and lock them for a worker.

local MOST_HELD_BACK = 50
local cut_short

-- Create due instances of recurring jobs, and move scheduled jobs that are due.
function pop.prepare(queue, now, wanted)
  recurring_spawn.run(queue, now, wanted)
  queue_sets.move_due(queue, now, wanted)
end

-- Lock up to `count` jobs of a queue for a worker: those with an expired lock first, then the
-- waiting ones. Return their jids in the order in which they are to run.
function pop.take(queue, worker, count, now)
  if count <= 0 or redis.call('SISMEMBER', keys.paused(), queue) == 1 then return {} end
  pop.register_worker(worker, now)
  count = math.min(count, constants.MAX_BATCH, pop.read_capacity(queue, now))
  local jobs, expired = {}, locks.find_expired(queue, now, count)
  for _, jid in ipairs(expired) do
    local job = locks.expire(queue, jid, now)
    local score = job and priority_score.compute(job.priority, job.put or now)
    if job and pop.may_start(queue, job, score, now) then jobs[#jobs + 1] = job end
  end
  cut_short = cut_short or #expired == count and #jobs < count
  local held_back = 0
  repeat
    local wanted = count - #jobs
    if wanted > 0 then pop.prepare(queue, now, wanted) end
    local top = wanted > 0 and redis.call('ZPOPMAX', keys.waiting(queue), wanted) or {}
    for i = 1, #top, 2 do
      local job = job_row.read(top[i])
      if job and pop.may_start(queue, job, top[i + 1], now) then
        jobs[#jobs + 1] = job
      elseif job then
        held_back = held_back + 1
      end
    end
    local more = #top == 2 * wanted and #jobs < count
    cut_short = cut_short or more and held_back >= MOST_HELD_BACK
  until not more or held_back >= MOST_HELD_BACK
  return pop.lock(queue, jobs, worker, now)
end

-- How many jobs of a queue may start now.
function pop.read_capacity(queue, now)
  local rate = config.queue(queue).rate
  return math.min(locks.read_capacity(queue, now),
    rate and rates.read_capacity('q:' .. queue, rate, now) or math.huge)
end

-- Whether the next job may start; otherwise it is held back, so that it blocks no others.
function pop.may_start(queue, job, score, now)
  if not job.terms or limits.admit(job, queue, score, now) then return true end
  redis.call('ZREM', keys.locks(queue), job.jid)
  return false
end

-- Whether a queue may have more jobs than this call could look for.
function pop.was_cut_short() return cut_short end

function pop.lock(queue, jobs, worker, now)
  if #jobs == 0 then return {} end
  local fence = redis.call('INCRBY', keys.fence(), #jobs) - #jobs
  local expires, time = json.number(locks.compute_expiry(queue, now)), record.format_time(now)
  local popped = cjson.encode({worker = worker})
  local jids, locked = {}, {}
  for i, job in ipairs(jobs) do
    history.append(job.jid, job, now, 'popped', popped)
    stats.add('wait', queue, now, now - (job.time or now))
    local run = json.number(fence + i)
    record.set_fields(job.jid, 'state', 'running', 'worker', worker, 'expires', expires,
      'time', time, 'x-put', job.time_text or time, 'x-fence', run)
    events.publish_tracked('popped', job.jid)
    if job.row then job_row.keep(job, worker, expires, time, run) end
    jids[i] = job.jid
    locked[2 * i - 1], locked[2 * i] = expires, job.jid
  end
  redis.call('ZADD', keys.locks(queue), unpack(locked))
  redis.call('ZADD', keys.worker_jobs(worker), unpack(locked))
  local rate = config.queue(queue).rate
  if rate then rates.record_starts('q:' .. queue, rate, jids, now) end
  return jids
end

local met = {}

-- Register a worker that asks for jobs, and forget workers that have been silent for too long.
function pop.register_worker(worker, now)
  if met[worker] then return end
  met[worker] = true
  redis.call('ZADD', keys.workers(), now, worker)
  local oldest = now - config.number('max-worker-age')
  local all_silent = redis.call('ZRANGE', keys.workers(), '-inf', oldest, 'BYSCORE', 'LIMIT', 0, 10)
  for _, silent in ipairs(all_silent) do
    redis.call('UNLINK', keys.worker_jobs(silent))
    redis.call('ZREM', keys.workers(), silent)
    redis.call('HDEL', keys.subscriptions(), silent)
  end
end

-- The number of jobs that a pop could return now.
function pop.count_available(queue, now)
  if redis.call('SISMEMBER', keys.paused(), queue) == 1 then return 0 end
  return redis.call('ZCOUNT', keys.locks(queue), '-inf', now)
    + redis.call('ZCARD', keys.waiting(queue))
    + queue_sets.count_due(queue, now) + redis.call('ZCOUNT', keys.recurring(queue), '-inf', now)
end
