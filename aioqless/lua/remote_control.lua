-- remote_control: send a command to a running worker, which replies on a given channel.
--
-- @arg     worker   string
-- @arg     answer   name          the end of the reply channel's name
-- @returns count                  the number of receivers
-- @when    subscribe
-- @arg     queue    name
-- @arg     limit    count?
-- @arg     weight   count?
-- @when    unsubscribe
-- @arg     queue    string
-- @when    pause
-- @when    resume
-- @when    stop
-- @when    show
-- @flags   allow-oom
-- @role    dashboard
-- @raises  NOWORKER

local command = {
  event = 'remote_control', command = word, answer = answer,
  queue = queue, limit = limit, weight = weight,
}
local heard = events.publish_to_worker(worker, command)
if heard == 0 then
  errors.raise('NOWORKER', 'no worker of this name is listening', {worker = worker})
end
return json.number(heard)
