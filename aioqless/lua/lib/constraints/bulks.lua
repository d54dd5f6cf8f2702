-- bulks: jobs that a worker pops together, for a handler that takes many at once. A job that is
-- ready gathers: it is scheduled, due `within` seconds later, and in `x:bulk` of its queue and key
-- by its score in `-work`. The first that is due waits like any job, and so does the best one when
-- `size` of them have gathered; the pop that takes it takes the others along, due or not. So the
-- index decides with whom a job runs, and never whether it does.

-- The constraints of a job that gathers; nil for other jobs.
function bulks.read(text)
  if not text or not string.find(text, '"bulk":', 1, true) then return nil end
  local own = job_constraints.read(text)
  return own.bulk and own or nil
end

-- A job is ready `since`: let it gather. Return its state, which the caller writes.
function bulks.gather(queue, jid, priority, own, text, since, now)
  local score = own.fair and turns.enter(queue, jid, priority, text, since, now)
    or priority_score.compute(priority, since)
  local index, due = keys.bulk(queue, own.bulk), since + own.within
  redis.call('ZADD', index, score, jid)
  if due <= now then
    queue_sets.add_waiting(queue, jid, score)
    return 'waiting'
  end
  queue_sets.add_scheduled(queue, jid, due)
  return bulks.complete(queue, index, own) == jid and 'waiting' or 'scheduled'
end

-- If enough have gathered, let the best one wait, unless it does already. Return its jid if so.
function bulks.complete(queue, index, own)
  if redis.call('ZCARD', index) < own.size then return nil end
  local best = redis.call('ZRANGE', index, -1, -1, 'WITHSCORES')
  if redis.call('ZREM', keys.scheduled(queue), best[1]) == 0 then return nil end
  call.woke = true
  queue_sets.add_waiting(queue, best[1], best[2])
  record.set_fields(best[1], 'state', 'waiting')
  return best[1]
end

-- The score of a job that has gathered; nil for others.
function bulks.find_score(queue, jid, own)
  return redis.call('ZSCORE', keys.bulk(queue, own.bulk), jid) or nil
end

-- A job waits again, at its former place: others may take it along.
function bulks.rejoin(queue, jid, text, score)
  local own = bulks.read(text)
  if own then redis.call('ZADD', keys.bulk(queue, own.bulk), score, jid) end
end

-- A job leaves without having started.
function bulks.leave(job, own)
  redis.call('ZREM', keys.bulk(job.queue, own.bulk), job.jid)
end

-- A job that gathers gets another priority; `score`: its new one in `-work`, if it waits.
function bulks.change_priority(job, priority, score)
  local own = bulks.read(job.constraints)
  local former = own and bulks.find_score(job.queue, job.jid, own)
  if not former then return end
  score = score or turns.change_priority(job, priority)
    or priority_score.compute(priority,
      priority_score.read_since(tonumber(former), job.priority) or job.time or 0)
  redis.call('ZADD', keys.bulk(job.queue, own.bulk), score, job.jid)
end

-- A job was lost, perhaps since it stops its worker: from now on it runs alone. Return its
-- constraints.
function bulks.separate(job)
  local own = bulks.read(job.constraints)
  if not own then return job.constraints end
  local set = members.read_set(job.constraints)
  own.set, own.bulk, own.size, own.within = nil, nil, nil, nil
  record.delete_fields(job.jid, 'x-bulk')
  if set or next(own) then
    local text = next(own) and cjson.encode(own) or '{}'
    if set then text = members.name_set(text, set) end
    record.set_fields(job.jid, 'x-constraints', text)
    return text
  end
  record.delete_fields(job.jid, 'x-constraints')
  return nil
end

-- Take along others of a bulk, at most `most`, with its `first` job, which was popped with this
-- score: add to `jobs` those that may start. `top` is what was popped with it. Return their number.
-- For a caller that runs jobs singly there are none.
function bulks.collect(queue, first, score, top, jobs, most, now)
  local own = bulks.read(first.constraints)
  if not own then return 0 end
  local index, count = keys.bulk(queue, own.bulk), #jobs
  redis.call('ZREM', index, first.jid)
  if not call.pops_bulks then most = 0 else first.bulk = first.jid end
  most = math.min(own.size - 1, most)
  repeat
    local before, found = #jobs, bulks.find(queue, index, own, top, most - #jobs + count, now)
    for _, other in ipairs(found) do
      local job = job_row.read(other.jid)
      if job and pop.may_start(queue, job, other.score, now, score) then
        job.ready_since = job.ready_since or not other.gathers
          and queue_sets.read_ready_since(job.jid, other.score, job.row[3]) or now
        job.bulk = first.jid
        jobs[#jobs + 1] = job
      end
    end
    -- One that a limit admits may wake the next one.
  until #found == 0 or #jobs - before < #found
  bulks.complete(queue, index, own)
  return #jobs - count
end

-- Take the best jobs of a bulk out of the index and their sets.
function bulks.find(queue, index, own, top, most, now)
  if most <= 0 then return {} end
  local best = redis.call('ZRANGE', index, 0, most - 1, 'REV', 'WITHSCORES')
  if #best < 2 * most then
    queue_sets.move_due(queue, now, most - #best / 2)
    best = redis.call('ZRANGE', index, 0, most - 1, 'REV', 'WITHSCORES')
  end
  if #best == 0 then return {} end
  local popped, jids = {}, {}
  for i = 1, #top, 2 do popped[top[i]] = true end
  for i = 1, #best, 2 do jids[#jids + 1] = best[i] end
  local waiting = redis.call('ZMSCORE', keys.waiting(queue), unpack(jids))
  local dues = redis.call('ZMSCORE', keys.scheduled(queue), unpack(jids))
  call.taken_along = call.taken_along or {}
  local found, taken = {}, {}
  for i, jid in ipairs(jids) do
    -- One that another client has popped may be scheduled by now for a later time.
    local gathers = dues[i] and tonumber(dues[i]) <= now + own.within
    if gathers or waiting[i] or popped[jid] and not call.taken_along[jid] then
      call.taken_along[jid] = true
      found[#found + 1] = {jid = jid, score = best[2 * i], gathers = gathers}
      taken[#taken + 1] = jid
    end
  end
  redis.call('ZREM', index, unpack(jids))
  if taken[1] then
    redis.call('ZREM', keys.waiting(queue), unpack(taken))
    redis.call('ZREM', keys.scheduled(queue), unpack(taken))
  end
  return found
end
