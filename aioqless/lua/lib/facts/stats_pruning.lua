-- stats_pruning: delete a queue's statistics after `stats-history` days and its histograms after
-- `histogram-history` days, today included.
-- Two sets list queues by the first day that may have any, so that unused queues are pruned as
-- well; a queue of which nothing is left is forgotten. Each call checks a bounded number of days.

local DAY = constants.DAY
local OLDEST = 3650
local PORTION = 60
local AHEAD = 30
local SAMPLE = 5

-- Register a queue when its first statistics of a day are written. If it is new here, peers may
-- have written earlier days, since it was first seen.
function stats_pruning.register_queue(queue, day)
  for _, listed in ipairs({keys.stats_days(), keys.histogram_days()}) do
    if redis.call('ZADD', listed, 'LT', day, queue) == 1 then
      local seen = tonumber(redis.call('ZSCORE', keys.queues(), queue))
      if seen and seen < day then redis.call('ZADD', listed, clock.start_of_day(seen), queue) end
    end
  end
end

-- The first day within an option's retention; today always is.
function stats_pruning.find_first_kept(option, now)
  return clock.start_of_day(now) - (math.min(math.max(1, math.floor(config.common(option))),
    OLDEST) - 1) * DAY
end

-- Whether a queue has a day beyond its retention.
function stats_pruning.is_due(now)
  local days, histograms = redis.call('ZRANGE', keys.stats_days(), 0, 0, 'WITHSCORES'),
    redis.call('ZRANGE', keys.histogram_days(), 0, 0, 'WITHSCORES')
  return days[2] and tonumber(days[2]) < stats_pruning.find_first_kept('stats-history', now)
    or histograms[2]
      and tonumber(histograms[2]) < stats_pruning.find_first_kept('histogram-history', now)
end

-- Delete a portion of what is too old, of any queue.
function stats_pruning.run(now)
  -- Queues of peers are registered little by little.
  for _, queue in ipairs(redis.call('ZRANDMEMBER', keys.queues(), SAMPLE)) do
    if not redis.call('ZSCORE', keys.stats_days(), queue) then
      stats_pruning.register_queue(queue, clock.start_of_day(now))
    end
  end
  stats_pruning.run_portion(keys.stats_days(), stats_pruning.find_first_kept('stats-history', now),
    now, function(queue, day)
    redis.call('UNLINK', keys.stats('wait', day, queue), keys.stats('run', day, queue),
      keys.stats('stats', day, queue))
  end)
  stats_pruning.run_portion(keys.histogram_days(),
    stats_pruning.find_first_kept('histogram-history', now), now, function(queue, day)
    stats_pruning.drop_histogram(keys.stats('wait', day, queue))
    stats_pruning.drop_histogram(keys.stats('run', day, queue))
  end)
end

-- Prune one kind of a day's statistics if it is too old, also that of other clients; otherwise
-- register the queue.
function stats_pruning.prune_day(key, kind, day, queue, now)
  local listed = tonumber(redis.call('ZSCORE', keys.stats_days(), queue))
  if day < stats_pruning.find_first_kept('stats-history', now) then
    redis.call('UNLINK', key)
  elseif kind ~= 'stats' and day < stats_pruning.find_first_kept('histogram-history', now) then
    stats_pruning.drop_histogram(key)
  end
  if not listed or listed > day then stats_pruning.register_queue(queue, day) end
end

-- Call `drop` for the next days before `limit` of the registered queues, oldest first.
function stats_pruning.run_portion(listed, limit, now, drop)
  local most = PORTION
  while most > 0 do
    local first = redis.call('ZRANGE', listed, '-inf', '(' .. json.number(limit), 'BYSCORE',
      'LIMIT', 0, 1, 'WITHSCORES')
    local queue = first[1]
    if not queue then return end
    local from = math.max(clock.start_of_day(tonumber(first[2])), limit - OLDEST * DAY)
    while from < limit and most > 0 do
      local to = math.min(limit, from + AHEAD * DAY)
      if to == from + DAY or stats_pruning.has_any(queue, from, to - DAY) then
        to = math.min(to, from + most * DAY)
        for day = from, to - DAY, DAY do drop(queue, day) end
        most = most - (to - from) / DAY
      end
      from, most = to, most - 1
    end
    if from < limit then
      redis.call('ZADD', listed, from, queue)
    else
      most = most - stats_pruning.advance(listed, queue, limit, clock.start_of_day(now))
    end
  end
end

-- Register a queue by its next day with statistics, or remove it; return the number of days
-- checked.
function stats_pruning.advance(listed, queue, limit, today)
  local last = math.min(today, limit + AHEAD * DAY)
  for day = limit, last, DAY do
    if day == limit + DAY and not stats_pruning.has_any(queue, day, last) then break end
    if stats_pruning.has_any(queue, day, day) then
      redis.call('ZADD', listed, day, queue)
      return (day - limit) / DAY + 1
    end
  end
  if last == today and not stats_pruning.is_used(queue, listed) then
    for _, key in ipairs({keys.queues(), keys.stats_days(), keys.histogram_days()}) do
      redis.call('ZREM', key, queue)
    end
  else
    redis.call('ZADD', listed, last, queue)
  end
  return 2
end

function stats_pruning.has_any(queue, first, last)
  local names = {}
  for day = first, last, DAY do
    for _, kind in ipairs({'wait', 'run', 'stats'}) do
      names[#names + 1] = keys.stats(kind, day, queue)
    end
  end
  return redis.call('EXISTS', unpack(names)) > 0
end

-- Whether a queue without recent statistics has older ones, jobs or recurring jobs, or is paused.
function stats_pruning.is_used(queue, listed)
  return listed ~= keys.stats_days() and redis.call('ZSCORE', keys.stats_days(), queue)
    or redis.call('SISMEMBER', keys.paused(), queue) == 1
    or redis.call('EXISTS', keys.waiting(queue), keys.scheduled(queue), keys.locks(queue),
      keys.depends(queue), keys.recurring(queue)) > 0
end

function stats_pruning.drop_histogram(key)
  local kept = redis.call('HMGET', key, 'total', 'mean', 'vk')
  if redis.call('UNLINK', key) == 1 and kept[1] then
    redis.call('HSET', key, 'total', kept[1], 'mean', kept[2] or 0, 'vk', kept[3] or 0)
  end
end
