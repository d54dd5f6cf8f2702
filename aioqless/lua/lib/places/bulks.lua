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
  local set = job_constraints.read_set(job.constraints)
  own.set, own.bulk, own.size, own.within = nil, nil, nil, nil
  record.delete_fields(job.jid, 'x-bulk')
  if set or next(own) then
    local text = next(own) and cjson.encode(own) or '{}'
    if set then text = job_constraints.name_set(text, set) end
    record.set_fields(job.jid, 'x-constraints', text)
    return text
  end
  record.delete_fields(job.jid, 'x-constraints')
  return nil
end
