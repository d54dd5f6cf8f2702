-- stats_pruning: delete a queue's statistics after `stats-history` days and its histograms after
-- `histogram-history` days, today included. A note does it once a day, first for the statistics of
-- all known queues, then for their histograms; queues of which nothing is left are forgotten.

local DAY = constants.DAY
local OLDEST = 3650
local OPTIONS = {'stats-history', 'histogram-history'}
local AHEAD = 30  -- days that are looked for at once

-- Statistics of a day are written, or a queue is new: there will be something to delete.
function stats_pruning.note_day(day)
  notes.schedule_earlier('review statistics', '', day + DAY)
  local at = stats_pruning.read()
  if at.from[1] and day >= at.from[1] and day >= at.from[2] then return end
  -- The clock was set back, or this is the first day: start again.
  at.from = {math.min(at.from[1] or day, day), math.min(at.from[2] or day, day)}
  at.to = nil
  stats_pruning.store(at)
end

-- The first day within an option's retention; today always is.
function stats_pruning.find_first_kept(option, now)
  return clock.start_of_day(now) - (math.min(math.max(1, math.floor(config.common(option))),
    OLDEST) - 1) * DAY
end

-- Delete a portion of what is too old. Return the cost: of how many jobs of the agenda.
function stats_pruning.run(now, most)
  local at, left = stats_pruning.read(), most
  if not at.to then
    at.to, at.part, at.rank = {}, 1, nil
    for part, option in ipairs(OPTIONS) do
      at.to[part] = stats_pruning.find_first_kept(option, now)
    end
  end
  while left > 0 and at.part <= #OPTIONS do
    at.rank = at.rank or redis.call('ZCARD', keys.queues()) - 1
    local found = at.rank >= 0 and redis.call('ZRANGE', keys.queues(), at.rank, at.rank,
      'WITHSCORES') or {}
    if found[1] then left = left - stats_pruning.run_queue(at, found[1], found[2], left, now) end
    if at.rank < 0 then
      at.part, at.rank = at.part + 1, nil
    elseif not at.day then
      at.rank = at.rank - 1
    end
    left = left - 1
  end
  if at.part > #OPTIONS then
    at.from, at.to, at.is_complete = at.to, nil, true
    notes.schedule_earlier('review statistics', '', clock.start_of_day(now) + DAY)
  else
    notes.schedule('review statistics', '', now)
  end
  stats_pruning.store(at)
  return most - left
end

-- Delete those of a queue that are too old, `most` days of them; `at.day` is where the next call
-- continues, if it has to. Return how many days were looked for.
function stats_pruning.run_queue(at, queue, seen, most, now)
  local from, to, looked = at.from[at.part] or math.huge, at.to[at.part], 0
  if not at.is_complete then
    -- Other clients may have written them since it was first seen.
    from = math.min(from, clock.start_of_day(tonumber(seen)))
  end
  local day = at.day or math.max(from, to - OLDEST * DAY)
  while day < to and looked < most do
    local last = math.min(to, day + AHEAD * DAY)
    looked = looked + 1
    if last == day + DAY or stats_pruning.has_any(queue, day, last - DAY) then
      last = math.min(last, day + (most - looked + 1) * DAY)
      looked = looked + (last - day) / DAY
      for each = day, last - DAY, DAY do stats_pruning.prune(at.part, each, queue) end
    end
    day = last
  end
  at.day = day < to and day or nil
  if not at.day and at.part == 1 and not stats_pruning.is_used(queue, to, now) then
    redis.call('ZREM', keys.queues(), queue)
  end
  return looked
end

function stats_pruning.prune(part, day, queue)
  if part == 1 then
    redis.call('UNLINK', keys.stats('wait', day, queue), keys.stats('run', day, queue),
      keys.stats('stats', day, queue))
  else
    stats_pruning.drop_histogram(keys.stats('wait', day, queue))
    stats_pruning.drop_histogram(keys.stats('run', day, queue))
  end
end

-- Prune one kind of a day's statistics if it is too old, also of a queue that isn't known.
function stats_pruning.prune_day(key, kind, day, now)
  if day < stats_pruning.find_first_kept('stats-history', now) then
    redis.call('UNLINK', key)
  elseif kind ~= 'stats' and day < stats_pruning.find_first_kept('histogram-history', now) then
    stats_pruning.drop_histogram(key)
  end
end

function stats_pruning.has_any(queue, first, last)
  local names = {}
  for day = first, last, DAY do
    for _, kind in ipairs({'wait', 'run', 'stats'}) do
      names[#names + 1] = keys.stats(kind, day, queue)
    end
  end
  return #names > 0 and redis.call('EXISTS', unpack(names)) > 0
end

-- Whether a queue has jobs, recurring jobs, or statistics from a day on, or is paused.
function stats_pruning.is_used(queue, first, now)
  if redis.call('EXISTS', keys.waiting(queue), keys.scheduled(queue), keys.locks(queue),
    keys.depends(queue), keys.recurring(queue)) > 0
    or redis.call('SISMEMBER', keys.paused(), queue) == 1 then
    return true
  end
  -- Clocks may have been ahead.
  for day = clock.start_of_day(now) + AHEAD * DAY, first, -AHEAD * DAY do
    if stats_pruning.has_any(queue, math.max(first, day - (AHEAD - 1) * DAY), day) then
      return true
    end
  end
  return false
end

function stats_pruning.drop_histogram(key)
  local kept = redis.call('HMGET', key, 'total', 'mean', 'vk')
  if redis.call('UNLINK', key) == 1 and kept[1] then
    redis.call('HSET', key, 'total', kept[1], 'mean', kept[2] or 0, 'vk', kept[3] or 0)
  end
end

-- How far it has come: `from`, before which nothing is left, and `to`, both of each option;
-- `is_complete` unless older days of other clients may be left; and where the next call continues:
-- `part`, `rank` of the queue, `day`.
function stats_pruning.read()
  local at = json.parse_object(redis.call('GET', keys.old_statistics()) or '')
  at.from = at.from or {}
  return at
end

function stats_pruning.store(at) redis.call('SET', keys.old_statistics(), cjson.encode(at)) end
