-- stats: statistics of a queue on a day.
--
-- @arg     queue    string
-- @arg     date     time          any time of the day
-- @flags   no-writes
-- @returns json                   {failed, failures, retries, lost_locks, explicit_retries, wait,
--                                 run}; `retries` is the sum of lost_locks and explicit_retries;
--                                 wait and run are {count, total, mean, std, variance, histogram}

local day = clock.start_of_day(date)
return '{"failed":' .. (redis.call('HGET', keys.stats('stats', day, queue), 'failed') or '0')
  .. ',' .. stats.encode_counters(day, queue)
  .. ',"wait":' .. stats.encode_summary('wait', day, queue) .. ',"run":'
    .. stats.encode_summary('run', day, queue) .. '}'
