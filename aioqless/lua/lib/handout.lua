-- handout: which jobs a worker gets, and the locks on them.

local MOST = 1000

-- Make ready what has become due in a queue.
function handout.refresh(queue, now, wanted)
  recurring.spawn(queue, now, wanted)
  place.move_due(queue, now, wanted)
end

-- Lock up to `count` jobs of a queue for a worker: those whose lock ran out first, then the waiting.
-- Returns their jids, in the order in which they are to run.
function handout.pop(queue, worker, count, now)
  if count <= 0 or redis.call('SISMEMBER', keys.paused(), queue) == 1 then return {} end
  handout.seen(worker, now)
  count = math.min(count, MOST, locks.room(queue, now))
  local jobs = {}
  for _, jid in ipairs(locks.lapsed(queue, now, count)) do
    jobs[#jobs + 1] = locks.lapse(queue, jid, now)
  end
  if #jobs < count then
    handout.refresh(queue, now, count - #jobs)
    local top = redis.call('ZPOPMAX', keys.work(queue), count - #jobs)
    for i = 1, #top, 2 do jobs[#jobs + 1] = record.read(top[i]) end
  end
  return handout.lock(queue, jobs, worker, now)
end

function handout.lock(queue, jobs, worker, now)
  if #jobs == 0 then return {} end
  local fence = redis.call('INCRBY', keys.fence(), #jobs) - #jobs
  local expires = now + config.heartbeat(queue)
  local popped = cjson.encode({worker = worker})
  local jids, locked = {}, {}
  for i, job in ipairs(jobs) do
    history.append(job.jid, job, now, 'popped', popped)
    stats.add('wait', queue, now, now - (job.time or now))
    record.set(job.jid, 'state', 'running', 'worker', worker, 'expires', expires, 'time', record.time(now),
      'x-put', job.time_text or record.time(now), 'x-fence', fence + i)
    events.tracked('popped', job.jid)
    jids[i] = job.jid
    locked[2 * i - 1], locked[2 * i] = expires, job.jid
  end
  redis.call('ZADD', keys.locks(queue), unpack(locked))
  redis.call('ZADD', keys.held(worker), unpack(locked))
  return jids
end

local met = {}

-- A worker that asks for work is known from then on; those that have been silent for too long are forgotten.
function handout.seen(worker, now)
  if met[worker] then return end
  met[worker] = true
  redis.call('ZADD', keys.workers(), now, worker)
  for _, silent in ipairs(redis.call('ZRANGE', keys.workers(), '-inf', now - config.number('max-worker-age'), 'BYSCORE', 'LIMIT', 0, 10)) do
    redis.call('UNLINK', keys.held(silent))
    redis.call('ZREM', keys.workers(), silent)
  end
end

-- How many jobs of a queue a pop could hand out now.
function handout.available(queue, now)
  if redis.call('SISMEMBER', keys.paused(), queue) == 1 then return 0 end
  return redis.call('ZCOUNT', keys.locks(queue), '-inf', now) + redis.call('ZCARD', keys.work(queue))
    + place.due(queue, now) + redis.call('ZCOUNT', keys.recur(queue), '-inf', now)
end
