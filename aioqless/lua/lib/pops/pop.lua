-- pop: select the next jobs of a queue, and lock them for a worker.

local MOST_HELD_BACK = 25

-- Create due instances of recurring jobs, and move scheduled jobs that are due.
function pop.prepare(queue, now, wanted)
  if redis.call('EXISTS', keys.recurring(queue), keys.scheduled(queue)) == 0 then return false end
  recurring_spawn.run(queue, now, wanted)
  placement.move_due(queue, now, wanted)
  return true
end

-- Lock up to `count` jobs of a queue for a worker: those with an expired lock first, then the
-- waiting ones, which are enough if they are as many and the caller `prefers_waiting`. Return their
-- jids in the order in which they are to run.
function pop.take(queue, worker, count, now, prefers_waiting)
  if count <= 0 or queue_sets.is_paused(queue) then return {} end
  if count > constants.MAX_BATCH then count = constants.MAX_BATCH end
  local room = presence.has('config') and pop.read_capacity(queue, now) or math.huge
  count = math.min(count, room)
  local jobs, held_back, prepared, first = {}, 0, false, math.huge
  -- Jobs beyond `count`, which need no slots: a bulk takes one. With them there may be `most`.
  local along, most, full = 0, math.min(room, constants.MAX_BATCH / 2), false
  local enough = prefers_waiting and redis.call('ZCARD', keys.waiting(queue)) >= count
  if not enough then
    pop.register_worker(worker, now)
    first = redis.call('ZRANGE', keys.locks(queue), '0', '0', 'WITHSCORES')[2]
    first = tonumber(first) or math.huge
    if first <= now then pop.take_expired(queue, jobs, count, now) end
  end
  repeat
    local wanted = math.min(count + along, room) - #jobs
    if wanted > 0 and not enough and pop.prepare(queue, now, wanted) then prepared = true end
    local top = wanted > 0 and redis.call('ZPOPMAX', keys.waiting(queue), wanted) or {}
    for i = 1, #top, 2 do
      local job = not (call.taken_along and call.taken_along[top[i]]) and job_row.read(top[i])
      if job and along > 0 and #jobs >= most then
        redis.call('ZADD', keys.waiting(queue), top[i + 1], top[i])
        full, call.cut_short = true, true
      elseif job and (not job.constraints or admission.may_start(queue, job, top[i + 1], now)) then
        job.ready_since = job.ready_since
          or queue_sets.read_ready_since(job.jid, top[i + 1], job.row[3])
        jobs[#jobs + 1] = job
        if job.constraints then
          along = along + bulk_collection.collect(queue, job, top[i + 1], top, jobs,
            math.min(room, constants.MAX_BATCH) - #jobs, now)
        end
      elseif job then
        held_back = held_back + 1
      end
    end
    if call.took_turn and #top < 2 * wanted then turns.reset(queue) end
    local more = (#top == 2 * wanted or call.woke and #top > 0) and wanted > 0
      and #jobs - along < count and not full
    call.cut_short = call.cut_short or more and held_back >= MOST_HELD_BACK
  until not more or held_back >= MOST_HELD_BACK
  if #jobs < count and enough then
    call.cut_short = true
  elseif #jobs < count and first > now and not prepared and held_back == 0 then
    call.known_dues = call.known_dues or {}
    call.known_dues[queue] = first
  end
  return #jobs == 0 and jobs or pop.lock(queue, jobs, worker, now)
end

-- Take away the jobs whose lock has expired.
function pop.take_expired(queue, jobs, count, now)
  local expired = locks.find_expired(queue, now, count)
  for _, jid in ipairs(expired) do
    local job = expiry.expire(queue, jid, now)
    local score = job and (job.constraints and turns.find_score(job)
      or priority_score.compute(job.priority, job.put or now))
    if job and admission.may_start(queue, job, score, now) then jobs[#jobs + 1] = job end
  end
  -- What follows from the end of one that had lost its lock may let others start.
  call.cut_short = call.cut_short or #expired == count and #jobs < count or call.notes ~= nil
end

-- When the next job of a queue becomes due by itself, as far as this call knows: that of a lock, if
-- there is nothing else.
function pop.get_known_due(queue) return call.known_dues and call.known_dues[queue] end

-- How many jobs of a queue may start now.
function pop.read_capacity(queue, now)
  local rate = config.rate(queue)
  return math.min(locks.read_capacity(queue, now),
    rate and rates.read_capacity('q:' .. queue, rate, now) or math.huge)
end

-- Whether a queue may have more jobs than this call could look for.
function pop.was_cut_short() return call.cut_short end

function pop.lock(queue, jobs, worker, now)
  local fence, rate = redis.call('INCRBY', keys.fence(), #jobs) - #jobs, config.rate(queue)
  local expires_at = locks.compute_expiry(queue, now)
  local expires = string.format(expires_at % 1 == 0 and '%d' or '%.17g', expires_at)
  local time = string.format('%.20f', now)
  local popped = '{"worker":' .. cjson.encode(worker) .. '}'
  local version = call.version and archive.is_on() and call.version
  local jids, locked = {}, {}
  for i, job in ipairs(jobs) do
    local jid, run = job.jid, string.format('%d', fence + i)
    history.append(jid, job, now, 'popped', popped)
    stats.add('wait', queue, now, now - (job.time or now))
    redis.call('HSET', keys.job(jid), 'state', 'running', 'worker', worker, 'expires', expires,
      'time', time, 'x-put', job.time_text or time, 'x-fence', run)
    if version then record.set_fields(jid, 'x-version', run .. ' ' .. version) end
    if presence.has('tracked') then events.publish_tracked('popped', jid) end
    if job.row then job_row.keep(job, expires, run, now) end
    jids[i] = jid
    locked[2 * i - 1], locked[2 * i] = expires, jid
  end
  redis.call('ZADD', keys.locks(queue), unpack(locked))
  redis.call('ZADD', keys.worker_jobs(worker), unpack(locked))
  if rate then rates.record_starts('q:' .. queue, rate, jids, now) end
  local dues = call.known_dues
  if dues and dues[queue] then dues[queue] = math.min(dues[queue], expires_at) end
  return jids
end

-- Register a worker that asks for jobs, and forget workers that have been silent for too long.
function pop.register_worker(worker, now)
  if call.registered_worker == worker then return end
  call.registered_worker = worker
  redis.call('ZADD', keys.workers(), now, worker)
  local oldest = now - config.max_worker_age()
  local all_silent = redis.call('ZRANGE', keys.workers(), '-inf', oldest, 'BYSCORE', 'LIMIT',
    '0', '10')
  for _, silent in ipairs(all_silent) do
    redis.call('UNLINK', keys.worker_jobs(silent))
    redis.call('ZREM', keys.workers(), silent)
  end
end

-- The number of jobs that a pop could return now.
function pop.count_available(queue, now)
  if queue_sets.is_paused(queue) then return 0 end
  return redis.call('ZCOUNT', keys.locks(queue), '-inf', now)
    + redis.call('ZCARD', keys.waiting(queue))
    + queue_sets.count_due(queue, now) + redis.call('ZCOUNT', keys.recurring(queue), '-inf', now)
end
