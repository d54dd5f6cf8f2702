-- stats: what a day was like in a queue.
--
-- @arg     queue    string
-- @arg     date     time          any time of the day
-- @flags   no-writes
-- @returns json                   {failed, failures, retries, wait, run}; wait and run: {count, total, mean, std, variance, histogram}

local day = stats.day(date)
local counters = redis.call('HMGET', keys.stats('stats', day, queue), 'failed', 'failures', 'retries')
return '{"failed":' .. (counters[1] or '0') .. ',"failures":' .. (counters[2] or '0') .. ',"retries":' .. (counters[3] or '0')
  .. ',"wait":' .. stats.summary('wait', day, queue) .. ',"run":' .. stats.summary('run', day, queue) .. '}'
