-- pop_many: lock the next jobs of several queues for a worker: queue by queue, or one from each in turn.
--
-- @arg     worker   name
-- @arg     count    count         at most 1,000 are handed out
-- @arg     now      time
-- @arg     order    string        `ordered`: a queue is left when it is empty; `rotation`: after each job
-- @batch   queue:string limit:count?      in order of preference, each with the most that is wanted of it
-- @flags   allow-oom
-- @present {view.list_rows(answer, worker), #answer < count and rotation.find_next_due(each, now) or '', json.number(now)}
-- @returns list                   [jobs' fields as view.list_rows has them], seconds until more becomes due ('': enough was there, or nothing
--                                 is in sight), and now

local take = order == 'rotation' and rotation.pop_in_turn or rotation.pop_in_order
if order ~= 'rotation' and order ~= 'ordered' then errors.bad_argument('order', order, 'must be ordered or rotation') end
local queues = rotation.read_queues(each)
dependency.run_deferred(now)
local jids = take(queues, worker, math.min(count, 1000), now)
stats.flush(now)
return jids
