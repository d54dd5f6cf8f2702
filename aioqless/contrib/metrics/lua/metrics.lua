-- metrics: what has run, what workers are, and deploy marks.
--
-- @when    series                 list the series
-- @returns texts                  `length:queue:klass`, the first being the bytes of the second
-- @when    periods                read records of series, see run_metrics.lua
-- @arg     seconds  count         of a period: 60, 600 or 3600
-- @arg     since    time
-- @arg     now      time
-- @rest    series   string        at most 50
-- @returns list                   the records of each, oldest first; some may be older
-- @when    facts                  return what workers are
-- @rest    workers  string
-- @returns texts                  JSON of each; empty where nothing is known
-- @when    history                return the memory and busy slots of a worker
-- @arg     worker   string
-- @returns text                   `minute bytes slots`, a line each, oldest first
-- @when    marks                  list the marks
-- @returns texts                  JSON: {at, text, deploy}
-- @flags   no-writes
-- @role    worker dashboard archiver

if word == 'series' then return redis.call('ZRANGE', keys.series(), 0, -1) end
if word == 'periods' then return run_metrics.read(seconds, since, series, now) end
if word == 'history' then return redis.call('HGET', keys.beat(worker), 'history') or '' end
if word == 'marks' then return redis.call('ZRANGE', keys.marks(), 0, -1) end
local found = {}
for i, name in ipairs(workers) do
  found[i] = redis.call('HGET', keys.beat(name), 'process') or ''
end
return found
