-- pop_many: lock the next jobs of several queues for a worker, in order of preference or in turn.
--
-- @arg     worker   name
-- @arg     count    count         at most 1,000
-- @arg     now      time
-- @arg     order    string        `ordered`: empty a queue before the next; `rotation`: one job
--                                 from each; `waiting`: as `ordered`, without looking for due jobs,
--                                 expired locks and silent workers where any job is waiting
-- @batch   queue:string limit:count?      in order of preference; at most `limit` jobs of each
-- @option  together string        any value: jobs of a bulk come together, and need one of `count`
-- @option  version  name          of the worker's code, for the archive
-- @option  idle     string        any value: the worker was idle, and if it leaves waiting jobs,
--                                 wakes others
-- @flags   allow-oom
-- @role    worker
-- @present rotation.reply(answer, worker, count, each, now)
-- @returns list                   the jobs' rows (lib/facts/job_row.lua), seconds until more jobs
--                                 become due ('': the batch is full, or none is in sight), and now

local take = order == 'rotation' and rotation.pop_in_turn or rotation.pop_in_order
if order ~= 'rotation' and order ~= 'ordered' and order ~= 'waiting' then
  errors.bad_argument('order', order, 'must be ordered, rotation or waiting')
end
local by = {worker = worker, version = version, takes_bulks = together,
  announces = idle and 'all' or 'taken'}
local queues = rotation.read_queues(each)
local jids = take(queues, by, math.min(count, constants.MAX_BATCH), now, order == 'waiting')
if order ~= 'waiting' or not jids[1] then notes.find_stored(now) end
stats.flush()
return job_row.remember(jids)
