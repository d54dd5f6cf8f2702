-- metrics_report: add what a worker has counted since its last report, and what it is now.
--
-- @arg     worker   string
-- @arg     report   string        `process:number`: one that is sent again is not added again
-- @arg     now      time
-- @arg     facts    object        what the worker is
-- @arg     memory   count         bytes
-- @arg     busy     count         slots
-- @arg     version  text?         of the application
-- @arg     ended    text?         `ended`: it is the worker's last report
-- @batch   queue:text klass:text values:string
-- @flags   allow-oom
-- @role    worker
-- @returns nothing

local rows = {}
local answers = each(function(queue, klass, values)
  rows[#rows + 1] = {queue, klass, run_metrics.parse(values)}
  return 'ok'
end)
for _, answer in ipairs(answers) do
  if answer ~= 'ok' then error(answer) end
end
if worker_facts.is_repeated(report) then return nil end
for _, row in ipairs(rows) do run_metrics.add(row[1], row[2], row[3], now) end
if args.is_given(version) then marks.note_version(version, now) end
if args.is_given(ended) then
  worker_facts.drop(worker)
else
  worker_facts.store(worker, facts, memory, busy, now)
end
