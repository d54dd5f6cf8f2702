-- events: tell who listens.  The texts are those that live clients send and expect.

local tracking
local put_to = {}
local completed_in = {}

function events.log(event) redis.call('PUBLISH', keys.log(), cjson.encode(event)) end

-- The commonest events; a batch spells its queue once.
function events.log_put(jid, queue)
  put_to[queue] = put_to[queue] or ',"queue":' .. cjson.encode(queue) .. '}'
  redis.call('PUBLISH', keys.log(), '{"event":"put","jid":' .. cjson.encode(jid) .. put_to[queue])
end

function events.log_completed(jid, queue)
  completed_in[queue] = completed_in[queue] or ',"queue":' .. cjson.encode(queue) .. '}'
  redis.call('PUBLISH', keys.log(), '{"event":"completed","jid":' .. cjson.encode(jid) .. completed_in[queue])
end

-- Returns how many heard it.
function events.worker(worker, event) return redis.call('PUBLISH', keys.worker(worker), cjson.encode(event)) end

-- Only for tracked jobs: the bare jid, on the event's own channel.
function events.tracked(name, jid)
  if tracking == nil then tracking = redis.call('EXISTS', keys.tracked()) == 1 end
  if tracking and redis.call('ZSCORE', keys.tracked(), jid) then redis.call('PUBLISH', keys.event(name), jid) end
end

-- A worker is to stop this job: its lock is no longer its own.
function events.lock_lost(worker, jid)
  local event = {event = 'lock_lost', jid = jid, worker = worker}
  events.worker(worker, event)
  events.log(event)
end

-- An idle worker of this queue may have something to do.
function events.ready(queue) redis.call('PUBLISH', keys.ready(), queue) end
