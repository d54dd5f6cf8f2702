-- stats: daily statistics of a queue. Only this library knows what a day is.

-- Counters: retries (lost locks), x-retries (explicit ones), failures, failed.
function stats.count(queue, time, what, by)
  local day = clock.start_of_day(time)
  if redis.call('HINCRBY', keys.stats('stats', day, queue), what, by) == by then
    stats_pruning.note_day(day)
  end
end

function stats.read_count(queue, time, what)
  return tonumber(redis.call('HGET', keys.stats('stats', clock.start_of_day(time), queue), what))
    or 0
end

-- The histogram's bin: seconds within a minute, then minutes, hours, days. And the range of seconds
-- that have it.
function stats.find_bin(seconds)
  local letter, width = 's', 1
  if seconds >= constants.DAY then
    letter, width = 'd', constants.DAY
  elseif seconds >= 3600 then
    letter, width = 'h', 3600
  elseif seconds >= 60 then
    letter, width = 'm', 60
  end
  local number = math.floor(seconds / width)
  return letter .. string.format('%d', number), number * width, (number + 1) * width
end

-- Add a value to a queue's `wait` or `run` of the day; stats.flush writes it. Values of the same
-- bins are written together.
function stats.add(kind, queue, now, seconds)
  -- The job's time may be no number.
  if not (seconds > -1e15 and seconds < 1e15) then seconds = 0 end
  local pending, date = call.pending_stats or {}, now - now % constants.DAY
  call.pending_stats = pending
  local values = pending[queue]
  while values and (seconds < values.low or seconds >= values.high or values.kind ~= kind
    or values.date ~= date) do
    values = values.other
  end
  if not values then
    local bin, low, high = stats.find_bin(seconds)
    values = {
      kind = kind, queue = queue, date = date, bin = bin, low = low, high = high,
      other = pending[queue],
    }
    pending[queue] = values
  end
  values[#values + 1] = seconds
end

-- Remove a value that was added at `time`.
function stats.remove(kind, queue, time, seconds)
  local key = keys.stats(kind, clock.start_of_day(time), queue)
  local bin = stats.find_bin(seconds)
  local stored = redis.call('HMGET', key, 'total', 'mean', 'vk', bin)
  local total, before, vk = (tonumber(stored[1]) or 0) - 1, tonumber(stored[2]) or 0,
    tonumber(stored[3]) or 0
  if total < 0 then return end
  local mean = total > 0 and (before * (total + 1) - seconds) / total or 0
  vk = total > 1 and math.max(0, vk - (seconds - before) * (seconds - mean)) or 0
  redis.call('HSET', key, 'total', total, 'mean', mean, 'vk', vk, bin,
    math.max(0, (tonumber(stored[4]) or 0) - 1))
end

-- Write the additions of this call. Return whether it is time to delete old jobs.
function stats.flush()
  local prunes = false
  for _, values in pairs(call.pending_stats or {}) do
    repeat
      prunes = stats.write(values) or prunes
      values = values.other
    until not values
  end
  call.pending_stats = nil
  return prunes
end

-- Add values to a day's statistics: mean and variance in one pass, by Welford's algorithm. Return
-- whether it is time to delete old jobs.
function stats.write(values)
  local key = keys.stats(values.kind, values.date, values.queue)
  local bin, many = values.bin, #values
  local f = redis.call('HMGET', key, 'total', 'mean', 'vk', bin)
  local before = tonumber(f[1]) or 0
  local total, mean, vk = before, tonumber(f[2]) or 0, tonumber(f[3]) or 0
  for i = 1, many do
    local seconds = values[i]
    local deviation = seconds - mean
    total = total + 1
    mean = total == 1 and seconds or mean + deviation / total
    vk = total == 1 and 0 or vk + deviation * (seconds - mean)
  end
  redis.call('HSET', key, 'total', total, 'mean', mean, 'vk', vk,
    bin, (tonumber(f[4]) or 0) + many)
  if before == 0 then stats_pruning.note_day(values.date) end
  return before % constants.PRUNED_EVERY + many >= constants.PRUNED_EVERY
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
    .. ',"histogram":' .. json.list(stats.list_histogram(values)) .. '}'
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
