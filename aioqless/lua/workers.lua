-- workers: the known workers and their jobs, without those silent for longer than max-worker-age.
--
-- @arg     now      time
-- @arg     worker   string?       this one alone
-- @flags   no-writes
-- @returns json                   [{name, jobs, stalled}], last seen first, at most 1,000; or
--                                 {jobs: [jid], stalled: [jid]}

if worker then return listing.list_worker_jobs(worker, now) end
local silent = now - config.number('max-worker-age')
local names = redis.call('ZRANGE', keys.workers(), '+inf', '(' .. json.number(silent), 'BYSCORE',
  'REV', 'LIMIT', 0, constants.MAX_BATCH)
for i, name in ipairs(names) do
  local jobs = redis.call('ZCOUNT', keys.worker_jobs(name), now, now + 8640000)
  local stalled = redis.call('ZCOUNT', keys.worker_jobs(name), 0, now)
  names[i] = '{"name":' .. cjson.encode(name) .. ',"jobs":' .. jobs .. ',"stalled":' .. stalled
    .. '}'
end
return json.list(names)
