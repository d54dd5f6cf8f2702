-- bulk_collection: the other jobs of a bulk, which a pop takes along with the first one.

local MOST_MOVED = 100  -- jobs that are due, of any key, which a bulk that isn't full looks through

-- Take along others of a bulk, at most `most`, with its `first` job, which was popped with this
-- score: add to `found.jobs` those that may start. `found.top` is what was popped with it, and
-- `found.moved` what became due. Return their number. `most` nil: the caller runs jobs singly.
function bulk_collection.collect(queue, first, score, found, most, now)
  local own = bulks.read(first.constraints)
  if not own then return 0 end
  local index, jobs, count = keys.bulk(queue, own.bulk), found.jobs, #found.jobs
  redis.call('ZREM', index, first.jid)
  if most then first.bulk = first.jid end
  most = math.min(own.size - 1, most or 0)
  repeat
    local before = #jobs
    local others = bulk_collection.find(queue, index, own, found, most - before + count, now)
    for _, other in ipairs(others) do
      local job = job_row.read(other.jid)
      if job and admission.may_start(queue, job, other.score, now, score) then
        job.ready_since = job.ready_since or not other.gathers and (found.moved[job.jid]
          or priority_score.read_since(tonumber(other.score), tonumber(job.row[3]) or 0)) or now
        job.bulk = first.jid
        jobs[#jobs + 1] = job
      end
    end
    -- One that a limit admits may wake the next one.
  until #others == 0 or #jobs - before < #others
  bulks.complete(queue, index, own)
  return #jobs - count
end

-- Take the best jobs of a bulk out of the index, their sets and `found.top`, where they become
-- false.
function bulk_collection.find(queue, index, own, found, most, now)
  if most <= 0 then return {} end
  local best = redis.call('ZRANGE', index, 0, most - 1, 'REV', 'WITHSCORES')
  if #best < 2 * most then
    placement.move_due(queue, now, MOST_MOVED, found.moved)
    best = redis.call('ZRANGE', index, 0, most - 1, 'REV', 'WITHSCORES')
  end
  if #best == 0 then return {} end
  local popped, jids, top = {}, {}, found.top
  for i = 1, #top, 2 do popped[top[i] or ''] = i end
  for i = 1, #best, 2 do jids[#jids + 1] = best[i] end
  local waiting = redis.call('ZMSCORE', keys.waiting(queue), unpack(jids))
  local dues = redis.call('ZMSCORE', keys.scheduled(queue), unpack(jids))
  local others, taken = {}, {}
  for i, jid in ipairs(jids) do
    -- One that another client has popped may be scheduled by now for a later time.
    local gathers = dues[i] and tonumber(dues[i]) <= now + own.within
    if gathers or waiting[i] or popped[jid] then
      if popped[jid] then top[popped[jid]] = false end
      others[#others + 1] = {jid = jid, score = best[2 * i], gathers = gathers}
      taken[#taken + 1] = jid
    end
  end
  redis.call('ZREM', index, unpack(jids))
  if taken[1] then
    redis.call('ZREM', keys.waiting(queue), unpack(taken))
    redis.call('ZREM', keys.scheduled(queue), unpack(taken))
  end
  return others
end
