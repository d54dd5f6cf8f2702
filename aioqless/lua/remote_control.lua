-- remote_control: send a command to a running worker, which replies on a given channel.
--
-- @arg     worker   string
-- @arg     channel  name          the end of the reply channel's name
-- @returns count                  the number of receivers
-- @when    subscribe              let a worker serve a queue
-- @arg     queue    name
-- @arg     limit    count?
-- @arg     weight   count?
-- @when    unsubscribe            let a worker stop serving a queue
-- @arg     queue    string
-- @when    pause                  pause a worker
-- @when    resume                 resume a worker
-- @when    stop                   shut a worker down gracefully
-- @when    show                   return what a worker serves
-- @when    stack                  return where the code of a running job is
-- @arg     jid      string
-- @flags   allow-oom
-- @role    dashboard
-- @raises  NOWORKER

local command = {
  event = 'remote_control', command = word, answer = channel,
  queue = queue, limit = limit, weight = weight, jid = jid,
}
local heard = events.publish_to_worker(worker, command)
if heard == 0 then
  errors.raise('NOWORKER', 'no worker of this name is listening', {worker = worker})
end
return json.number(heard)
