-- events: publish events. The messages are those that live clients send and expect.

local tracking
local put_to = {}
local completed_in = {}

function events.publish(event) redis.call('PUBLISH', keys.log_channel(), cjson.encode(event)) end

-- The most frequent events; a batch formats its queue once.
function events.publish_put(jid, queue)
  put_to[queue] = put_to[queue] or ',"queue":' .. cjson.encode(queue) .. '}'
  redis.call('PUBLISH', keys.log_channel(),
    '{"event":"put","jid":' .. cjson.encode(jid) .. put_to[queue])
end

function events.publish_completed(jid, queue)
  completed_in[queue] = completed_in[queue] or ',"queue":' .. cjson.encode(queue) .. '}'
  redis.call('PUBLISH', keys.log_channel(),
    '{"event":"completed","jid":' .. cjson.encode(jid) .. completed_in[queue])
end

-- Return the number of receivers.
function events.publish_to_worker(worker, event)
  return redis.call('PUBLISH', keys.worker_channel(worker), cjson.encode(event))
end

-- Tracked jobs only: publish the bare jid on the event's own channel.
function events.publish_tracked(name, jid)
  if tracking == nil then tracking = redis.call('EXISTS', keys.tracked()) == 1 end
  if tracking and redis.call('ZSCORE', keys.tracked(), jid) then
    redis.call('PUBLISH', keys.event_channel(name), jid)
  end
end

-- Tell a worker to stop a job: it no longer holds the lock.
function events.publish_lock_lost(worker, jid)
  local event = {event = 'lock_lost', jid = jid, worker = worker}
  events.publish_to_worker(worker, event)
  events.publish(event)
end

-- Wake idle workers of this queue.
function events.publish_ready(queue) redis.call('PUBLISH', keys.ready_channel(), queue) end
