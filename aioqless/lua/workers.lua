-- workers: the known workers and their jobs, without those silent for longer than max-worker-age.
--
-- @arg     now      time
-- @arg     worker   string?       this one alone
-- @flags   no-writes
-- @role    worker archiver
-- @returns json                   [{name, jobs, stalled, seen, alive, queues}], last seen first, at
--                                 most 1,000, `alive` and `queues` null where a client sends no
--                                 beats; or {jobs: [jid], stalled: [jid]}

if worker then return listing.list_worker_jobs(worker, now) end
local silent = now - config.max_worker_age()
local known = redis.call('ZRANGE', keys.workers(), '+inf', '(' .. json.number(silent), 'BYSCORE',
  'REV', 'LIMIT', 0, constants.MAX_BATCH, 'WITHSCORES')
local workers = {}
for i = 1, #known, 2 do
  local name, seen = known[i], tonumber(known[i + 1])
  local jobs = redis.call('ZCOUNT', keys.worker_jobs(name), now, now + 8640000)
  local stalled = redis.call('ZCOUNT', keys.worker_jobs(name), 0, now)
  workers[#workers + 1] = '{"name":' .. cjson.encode(name) .. ',"jobs":' .. jobs .. ',"stalled":'
    .. stalled .. ',"seen":' .. json.number(seen) .. ',' .. beats.describe(name, now) .. '}'
end
return json.list(workers)
