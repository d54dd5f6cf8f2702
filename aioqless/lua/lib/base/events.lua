-- events: publish events, in the form that live clients send and expect. The messages of our puts
-- begin with the field `event`, and those of live clients with `jid`: idle workers ignore ours,
-- since `publish_ready` wakes them.

function events.publish(event) redis.call('PUBLISH', keys.log_channel(), cjson.encode(event)) end

-- Return the number of receivers.
function events.publish_to_worker(worker, event)
  return redis.call('PUBLISH', keys.worker_channel(worker), cjson.encode(event))
end

-- Tracked jobs only: publish the bare jid on the event's own channel.
function events.publish_tracked(name, jid)
  if presence.has('tracked') and redis.call('ZSCORE', keys.tracked(), jid) then
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
function events.publish_ready(queue) redis.call('PUBLISH', keys.ready_channel(), '+' .. queue) end

-- Tell idle workers of this queue that another has taken all jobs that may start.
function events.publish_taken(queue) redis.call('PUBLISH', keys.ready_channel(), '-' .. queue) end
