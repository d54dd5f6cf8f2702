-- run_metrics: what ran, by queue, klass and period. A record is a MessagePack array: the number of
-- its period, failures, retries, the seconds of runs and of waits in units of 0.1 ms, then two
-- histograms: the first bucket, how many there are, and the count of each. Buckets below 64 count
-- runs by their duration, those from 64 on waits.

-- Seconds of a period, and how many are kept: 8 hours, 3 days, 30 days, and the current one.
local RESOLUTIONS = {{60, 481}, {600, 433}, {3600, 721}}
local KEPT = 2592000
local MOST_SERIES = 1000
local OTHERS = '0::'
local MOST_NUMBERS = 260  -- of what is added
local MOST_ROWS = 100
local SUMS = 4
local HISTOGRAMS = {{0, 47}, {64, 95}}
local MOST_READ = 50
local MOST_AHEAD = 2  -- periods

-- Parse what a worker has counted: a JSON list of {queue, klass, values}; values are a list of the
-- sums, then pairs of a bucket and its count.
function run_metrics.parse(text)
  local valid, rows = pcall(cjson.decode, text)
  if not valid or type(rows) ~= 'table' or #rows > MOST_ROWS then
    errors.bad_argument('counts', nil, 'are not at most ' .. MOST_ROWS .. ' counts of runs')
  end
  for i, row in ipairs(rows) do
    valid = type(row) == 'table' and type(row[1]) == 'string' and type(row[2]) == 'string'
    rows[i] = {valid and row[1], valid and row[2], run_metrics.parse_values(valid and row[3])}
  end
  return rows
end

function run_metrics.parse_values(numbers)
  local valid = type(numbers) == 'table' and #numbers >= SUMS and #numbers <= MOST_NUMBERS
    and #numbers % 2 == 0
  for i = 1, valid and #numbers or 0 do
    local number = numbers[i]
    valid = valid and type(number) == 'number' and number >= 0 and number % 1 == 0
  end
  if not valid then errors.bad_argument('counts', nil, 'are not counts of runs') end
  local added = {unpack(numbers, 1, SUMS)}
  added.counts = {}
  for i = SUMS + 1, #numbers, 2 do added.counts[numbers[i]] = numbers[i + 1] end
  return added
end

function run_metrics.add(queue, klass, added, now)
  local series = run_metrics.register(queue, klass, now)
  for _, resolution in ipairs(RESOLUTIONS) do
    local seconds, kept = resolution[1], resolution[2]
    local key, period = keys.periods(seconds, series), math.floor(now / seconds)
    local last = redis.call('LINDEX', key, -1)
    local record = last and cmsgpack.unpack(last)
    -- A period later than the current one: the clock was ahead. If by more, the record is left.
    if record and record[1] >= period and record[1] <= period + MOST_AHEAD then
      redis.call('LSET', key, -1, run_metrics.pack(record[1], added, record))
    else
      redis.call('RPUSH', key, run_metrics.pack(period, added, {}))
      redis.call('LTRIM', key, -kept, -1)
      redis.call('EXPIRE', key, seconds * kept)
    end
  end
end

-- Note that a series is added to. One that is new when there are too many is not kept apart.
function run_metrics.register(queue, klass, now)
  local series, known = #queue .. ':' .. queue .. ':' .. klass, keys.series()
  if not redis.call('ZSCORE', known, series) and redis.call('ZCARD', known) >= MOST_SERIES then
    redis.call('ZREMRANGEBYSCORE', known, '-inf', now - KEPT)
    if redis.call('ZCARD', known) >= MOST_SERIES then series = OTHERS end
  end
  redis.call('ZADD', known, now, series)
  return series
end

-- The record of a period: what is added, and the former record of it, if any.
function run_metrics.pack(period, added, former)
  local record, counts, at = {period}, added.counts, SUMS + 2
  for i = 1, SUMS do record[i + 1] = added[i] + (former[i + 1] or 0) end
  for _, range in ipairs(HISTOGRAMS) do
    local before, first, many = {}, former[at] or 0, former[at + 1] or 0
    for i = 1, many do before[first + i - 1] = former[at + 1 + i] end
    at = at + 2 + many
    local low, high = range[1], range[2]
    while low <= high and not (counts[low] or before[low]) do low = low + 1 end
    while high >= low and not (counts[high] or before[high]) do high = high - 1 end
    record[#record + 1], record[#record + 2] = low, high - low + 1
    for bucket = low, high do
      record[#record + 1] = (counts[bucket] or 0) + (before[bucket] or 0)
    end
  end
  return cmsgpack.pack(record)
end

-- The records of some series that may be as late as `since`.
function run_metrics.read(seconds, since, series, now)
  if #series > MOST_READ then
    errors.bad_argument('series', nil, 'are more than 50; call again for the others')
  end
  local found, most = {}, nil
  for _, resolution in ipairs(RESOLUTIONS) do
    if resolution[1] == seconds then most = resolution[2] end
  end
  if not most then errors.bad_argument('seconds', seconds, 'must be 60, 600 or 3600') end
  local asked = math.floor(now / seconds) - math.floor(since / seconds) + 1
  most = math.max(1, math.min(most, asked))
  for i, name in ipairs(series) do
    found[i] = redis.call('LRANGE', keys.periods(seconds, name), -most, -1)
  end
  return found
end
