-- stats: daily statistics of a queue. Only this library knows what a day is.

local DAY = 86400
local PRUNED_EVERY = 50
-- The lower bounds of our bins within the first second.
local MILLISECONDS = {0, 1, 2, 5, 10, 20, 50, 100, 200, 500}
local pending = {}
local latest
local bins = {}

function stats.start_of_day(time) return time - time % DAY end

-- Counters: retries (lost locks), x-retries (explicit ones), failures, failed.
function stats.count(queue, time, what, by)
  local day = stats.start_of_day(time)
  if redis.call('HINCRBY', keys.stats('stats', day, queue), what, by) == by then
    stats_pruning.register_queue(queue, day)
  end
end

function stats.read_count(queue, time, what)
  return tonumber(redis.call('HGET', keys.stats('stats', stats.start_of_day(time), queue), what))
    or 0
end

-- The histogram's bin: seconds within a minute, then minutes, hours, days.
function stats.find_bin(seconds)
  seconds = math.floor(seconds)
  bins[seconds] = bins[seconds] or stats.format_bin(seconds)
  return bins[seconds]
end

-- Our bin beside that of the first second: `x-ms0` to `x-ms500`.
function stats.find_millisecond_bin(seconds)
  local at = #MILLISECONDS
  while at > 1 and seconds * 1000 < MILLISECONDS[at] do at = at - 1 end
  return 'x-ms' .. MILLISECONDS[at]
end

function stats.format_bin(seconds)
  if seconds < 60 then return 's' .. string.format('%.0f', seconds) end
  if seconds < 3600 then return 'm' .. math.floor(seconds / 60) end
  if seconds < DAY then return 'h' .. math.floor(seconds / 3600) end
  return 'd' .. string.format('%.0f', math.floor(seconds / DAY))
end

-- Add a value to a queue's `wait` or `run` of the day; stats.flush writes it. Mean and variance in
-- one pass, by Welford's algorithm.
function stats.add(kind, queue, now, seconds)
  if not (math.abs(seconds) < 1e15) then seconds = 0 end  -- the job's time is not a number
  local day = latest
  if not day or day.kind ~= kind or day.queue ~= queue or day.date ~= stats.start_of_day(now) then
    day = stats.read_pending(kind, now, queue)
    latest = day
  end
  day.total = day.total + 1
  if day.total == 1 then
    day.mean, day.vk = seconds, 0
  else
    local before = day.mean
    day.mean = before + (seconds - before) / day.total
    day.vk = day.vk + (seconds - day.mean) * (seconds - before)
  end
  stats.count_bins(day, seconds, 1)
end

function stats.count_bins(day, seconds, by)
  local bin = stats.find_bin(seconds)
  day.bins[bin] = (day.bins[bin] or 0) + by
  if seconds >= 0 and seconds < 1 then
    local fine = stats.find_millisecond_bin(seconds)
    day.bins[fine] = (day.bins[fine] or 0) + by
  end
end

-- Remove a value that was added at `time`.
function stats.remove(kind, queue, time, seconds)
  local day = stats.read_pending(kind, time, queue)
  if day.total <= 0 then return end
  local before = day.mean
  day.total = day.total - 1
  day.mean = day.total > 0 and (before * (day.total + 1) - seconds) / day.total or 0
  day.vk = day.total > 1 and math.max(0, day.vk - (seconds - before) * (seconds - day.mean)) or 0
  stats.count_bins(day, seconds, -1)
  latest = day
end

-- The values to write, by kind, day and queue.
function stats.read_pending(kind, now, queue)
  local date = stats.start_of_day(now)
  local key = keys.stats(kind, date, queue)
  if not pending[key] then
    local stored = redis.call('HMGET', key, 'total', 'mean', 'vk')
    local total = tonumber(stored[1]) or 0
    pending[key] = {
      kind = kind, queue = queue, date = date, bins = {},
      before = total, total = total, mean = tonumber(stored[2]) or 0, vk = tonumber(stored[3]) or 0,
    }
  end
  return pending[key]
end

-- Write the additions of this call. A call without any prunes old statistics instead.
function stats.flush(now)
  local prunes = not latest and stats_pruning.is_due(now)
  for key, day in pairs(pending) do
    redis.call('HSET', key, 'total', day.total, 'mean', day.mean, 'vk', day.vk)
    for bin, count in pairs(day.bins) do redis.call('HINCRBY', key, bin, count) end
    if day.before == 0 then stats_pruning.register_queue(day.queue, day.date) end
    prunes = prunes
      or math.floor((day.before - 1) / PRUNED_EVERY) < math.floor((day.total - 1) / PRUNED_EVERY)
  end
  pending, latest = {}, nil
  if prunes then stats_pruning.run(now) end
end

function stats.drop_histogram(key)
  local kept = redis.call('HMGET', key, 'total', 'mean', 'vk')
  if redis.call('UNLINK', key) == 1 and kept[1] then
    redis.call('HSET', key, 'total', kept[1], 'mean', kept[2] or 0, 'vk', kept[3] or 0)
  end
end

-- One kind of a day's statistics, in the words of live clients and of the specification.
function stats.encode_summary(kind, day, queue)
  local stored = redis.call('HGETALL', keys.stats(kind, day, queue))
  local values = {}
  for i = 1, #stored, 2 do values[stored[i]] = stored[i + 1] end
  local total, vk = tonumber(values.total) or 0, tonumber(values.vk) or 0
  local variance = total > 1 and vk / (total - 1) or 0
  return '{"count":' .. json.number(total) .. ',"total":' .. json.number(total) .. ',"mean":'
    .. json.number(tonumber(values.mean) or 0)
    .. ',"std":' .. json.number(math.sqrt(variance)) .. ',"variance":' .. json.number(variance)
    .. ',"histogram":' .. json.list(stats.list_histogram(values)) .. ',"milliseconds":'
      .. json.list(stats.list_milliseconds(values)) .. '}'
end

-- 148 counters: s0 to s59, m1 to m59, h1 to h23, d1 to d6.
function stats.list_histogram(values)
  local counters = {}
  for _, range in ipairs({{'s', 0, 59}, {'m', 1, 59}, {'h', 1, 23}, {'d', 1, 6}}) do
    for number = range[2], range[3] do
      counters[#counters + 1] = values[range[1] .. number] or '0'
    end
  end
  return counters
end

-- 10 counters of what took less than a second, as far as our scripts counted it.
function stats.list_milliseconds(values)
  local counters = {}
  for i, begin in ipairs(MILLISECONDS) do counters[i] = values['x-ms' .. begin] or '0' end
  return counters
end

-- The counters of a queue on a day, as members of an object.
function stats.encode_totals(day, queue)
  return '"popped":'
    .. json.number(tonumber(redis.call('HGET', keys.stats('wait', day, queue), 'total')) or 0)
    .. ',"completed":'
      .. json.number(tonumber(redis.call('HGET', keys.stats('run', day, queue), 'total')) or 0)
    .. ',' .. stats.encode_counters(day, queue)
end

-- Failures and retries of a day, as members of an object. Live clients' `retries` are lost locks
-- alone; explicit ones have a field of ours.
function stats.encode_counters(day, queue)
  local counters = redis.call('HMGET', keys.stats('stats', day, queue), 'failures', 'retries',
    'x-retries')
  local lost, explicit = tonumber(counters[2]) or 0, tonumber(counters[3]) or 0
  return '"failures":' .. (counters[1] or '0') .. ',"retries":' .. json.number(lost + explicit)
    .. ',"lost_locks":' .. json.number(lost)
    .. ',"explicit_retries":' .. json.number(explicit)
end
