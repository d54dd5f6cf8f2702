-- pop: select the next jobs of a queue, and lock them for a worker.

local MOST_HELD_BACK = 25
local LOOKS_AGAIN = 0.1  -- seconds until a pop that preferred waiting jobs is followed by another

-- Create due instances of recurring jobs, and move scheduled jobs that are due. `moved` gets when
-- each of these was, by jid. Return whether there are any of either.
function pop.prepare(queue, now, wanted, moved)
  if redis.call('EXISTS', keys.recurring(queue), keys.scheduled(queue)) == 0 then return false end
  recurring_spawn.run(queue, now, wanted)
  placement.move_due(queue, now, wanted, moved)
  return true
end

-- Lock up to `count` jobs of a queue: those with an expired lock first, then the waiting ones,
-- which are enough if there are any and the caller `prefers_waiting`. `by` has the worker, the
-- version of its code, whether it takes bulks, and whether it `announces` to idle workers that it
-- has taken all that may start, or `all`: also that it has left some. Return the jids in the order
-- in which the jobs are to run.
function pop.take(queue, by, count, now, prefers_waiting)
  if count <= 0 or queue_sets.is_paused(queue) then return {} end
  if count > constants.MAX_BATCH then count = constants.MAX_BATCH end
  local room = presence.has('config') and pop.read_capacity(queue, now) or math.huge
  local asked = count
  if room < count then count = room end
  local jobs, held_back, prepared, first = {}, 0, false, math.huge
  local found, limited, takes_turns = {jobs = jobs, moved = {}}, false, false
  -- Jobs beyond `count`, which need no slots: a bulk takes one.
  local along, full, more = 0, false, false
  local ahead = prefers_waiting and pop.take_waiting(queue, count) or {}
  local enough = ahead[1] ~= nil
  if not enough then first, more = pop.look_at_locks(queue, by, jobs, count, now) end
  repeat
    local wanted = math.min(count + along, room) - #jobs
    if wanted > 0 and not enough and pop.prepare(queue, now, wanted, found.moved) then
      prepared = true
    end
    local top = ahead[1] and ahead or pop.take_waiting(queue, wanted)
    found.top = top
    for i = 1, #top, 2 do
      local job = top[i] and job_row.read(top[i])
      if job and along > 0 and #jobs >= math.min(room, constants.MAX_BATCH / 2) then
        redis.call('ZADD', keys.waiting(queue), top[i + 1], top[i])
        full = true
      elseif job and (not job.constraints or admission.may_start(queue, job, top[i + 1], now)) then
        job.ready_since = job.ready_since or found.moved[job.jid]
          or priority_score.read_since(tonumber(top[i + 1]), tonumber(job.row[3]) or 0)
        jobs[#jobs + 1] = job
        if job.constraints then
          limited, takes_turns = true, takes_turns or job.turn
          along = along + bulk_collection.collect(queue, job, top[i + 1], found,
            by.takes_bulks and math.min(room, constants.MAX_BATCH) - #jobs or nil, now)
        end
      elseif job then
        held_back, limited = held_back + 1, true
      end
    end
    if takes_turns and #top < 2 * wanted then turns.reset(queue) end
    -- One that starts or is held back may let others wait that were held back.
    local again = wanted > 0 and #jobs - along < count and not full and (#top == 2 * wanted
      or limited and #top > 0 and redis.call('EXISTS', keys.waiting(queue)) == 1)
    more = more or full or again and held_back >= MOST_HELD_BACK or found.moved.has_more
    if again then ahead = {} end
  until not again or held_back >= MOST_HELD_BACK
  if more then
    pop.note_due(queue, now)
  elseif #jobs < count and enough then
    pop.note_due(queue, now + LOOKS_AGAIN)
  elseif #jobs < count and first > now and not prepared and held_back == 0 then
    pop.note_due(queue, first)
  end
  if #jobs == 0 then return jobs end
  if by.announces then pop.announce(queue, by, #jobs < asked) end
  return pop.lock(queue, jobs, by, now)
end

function pop.announce(queue, by, took_all)
  if took_all or redis.call('EXISTS', keys.waiting(queue)) == 0 then
    events.publish_taken(queue)
  elseif by.announces == 'all' then
    events.publish_ready(queue)
  end
end

-- The first waiting jobs, and the score of each.
function pop.take_waiting(queue, count)
  return count > 0 and redis.call('ZPOPMAX', keys.waiting(queue), count) or {}
end

-- Register the worker, and take away the jobs whose lock has expired. Return when the first lock
-- of the queue expires, and whether there may be more that have.
function pop.look_at_locks(queue, by, jobs, count, now)
  pop.register_worker(by, now)
  local first = redis.call('ZRANGE', keys.locks(queue), '0', '0', 'WITHSCORES')[2]
  first = tonumber(first) or math.huge
  return first, first <= now and pop.take_expired(queue, jobs, count, now)
end

-- Take away the jobs whose lock has expired. Return whether there may be more.
function pop.take_expired(queue, jobs, count, now)
  local expired = locks.find_expired(queue, now, count)
  for _, jid in ipairs(expired) do
    local job = expiry.expire(queue, jid, now)
    local score = job and (job.constraints and turns.find_score(job)
      or priority_score.compute(job.priority, job.put or now))
    if job and admission.may_start(queue, job, score, now) then jobs[#jobs + 1] = job end
  end
  -- What follows from the end of one that had lost its lock may let others start.
  return #expired == count and #jobs < count or call.notes ~= nil
end

-- When the next job of a queue becomes due by itself, as far as this call knows: that of a lock, if
-- there is nothing else; now, if there may be more than the call could look for.
function pop.get_known_due(queue) return call.dues and call.dues[queue] end

function pop.note_due(queue, due)
  call.dues = call.dues or {}
  call.dues[queue] = math.min(due, call.dues[queue] or due)
end

-- How many jobs of a queue may start now.
function pop.read_capacity(queue, now)
  local rate = config.rate(queue)
  return math.min(locks.read_capacity(queue, now),
    rate and rates.read_capacity('q:' .. queue, rate, now) or math.huge)
end

function pop.lock(queue, jobs, by, now)
  local worker, rate = by.worker, config.rate(queue)
  local fence = redis.call('INCRBY', keys.fence(), #jobs) - #jobs
  local expires_at = locks.compute_expiry(queue, now)
  local expires = string.format(expires_at % 1 == 0 and '%d' or '%.17g', expires_at)
  local time = string.format('%.6f', now)
  local popped = history.encode(now, 'popped', '{"worker":' .. cjson.encode(worker) .. '}')
  local version = by.version and archive.is_on() and by.version
  local jids, locked = {}, {}
  for i, job in ipairs(jobs) do
    local jid, run = job.jid, string.format('%d', fence + i)
    -- Without a history in the hash, its state is written twice.
    local also, value = 'state', 'running'
    if job.old_history then also, value = 'history', '[]' end
    history.append_encoded(jid, job, popped, true)
    stats.add('wait', queue, now, now - (job.time or now))
    redis.call('HSET', keys.job(jid), 'state', 'running', 'worker', worker, 'expires', expires,
      'time', time, 'x-put', job.time_text or time, 'x-fence', run, also, value)
    if version then record.set_fields(jid, 'x-version', run .. ' ' .. version) end
    if presence.has('tracked') then events.publish_tracked('popped', jid) end
    if job.row then job_row.keep(job, expires, run, now) end
    jids[i] = jid
    locked[2 * i - 1], locked[2 * i] = expires, jid
  end
  redis.call('ZADD', keys.locks(queue), unpack(locked))
  redis.call('ZADD', keys.worker_jobs(worker), unpack(locked))
  if rate then rates.record_starts('q:' .. queue, rate, jids, now) end
  if call.dues and call.dues[queue] then pop.note_due(queue, expires_at) end
  return jids
end

-- Register a worker that asks for jobs, and forget workers that have been silent for too long.
function pop.register_worker(by, now)
  if by.is_registered then return end
  by.is_registered = true
  redis.call('ZADD', keys.workers(), now, by.worker)
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
