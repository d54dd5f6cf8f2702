-- order: tell a running worker, by its name, what to do from now on; it answers on a channel of the caller's choice.
--
-- @arg     worker   string
-- @arg     answer   name          the end of that channel's name
-- @returns number                 how many heard it
-- @when    subscribe
-- @arg     queue    name
-- @arg     limit    count?
-- @arg     weight   count?
-- @when    unsubscribe
-- @arg     queue    string
-- @when    quiet
-- @when    resume
-- @when    stop
-- @when    show
-- @flags   allow-oom
-- @raises  NOWORKER

local order = {event = 'order', order = word, answer = answer, queue = queue, limit = limit, weight = weight}
local heard = events.publish_to_worker(worker, order)
if heard == 0 then errors.raise('NOWORKER', 'no worker of this name is listening', {worker = worker}) end
return json.number(heard)
