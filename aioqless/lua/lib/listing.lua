-- listing: which jobs are where, and how many. Nothing is written: a job that has become due counts as waiting,
-- although it is some pop that will move it.

local EMPTY = {}

function listing.counts(queue, now)
  local stalled = redis.call('ZCOUNT', keys.locks(queue), 0, now)
  local due = place.due(queue, now)
  return '{"name":' .. cjson.encode(queue)
    .. ',"waiting":' .. redis.call('ZCARD', keys.work(queue)) + due
    .. ',"running":' .. redis.call('ZCARD', keys.locks(queue)) - stalled
    .. ',"stalled":' .. stalled
    .. ',"scheduled":' .. redis.call('ZCARD', keys.scheduled(queue)) - due
    .. ',"depends":' .. redis.call('ZCARD', keys.depends(queue))
    .. ',"recurring":' .. redis.call('ZCARD', keys.recur(queue))
    .. ',"paused":' .. tostring(redis.call('SISMEMBER', keys.paused(), queue) == 1) .. '}'
end

function listing.jids(state, queue, now, offset, count)
  if count == 0 then return EMPTY end
  local last = offset + count - 1
  if state == 'complete' then return redis.call('ZRANGE', keys.completed(), offset, last, 'REV') end
  args.string('queue', queue)
  if state == 'waiting' then return listing.waiting(queue, now, offset, count) end
  if state == 'running' then return redis.call('ZRANGE', keys.locks(queue), now, '+inf', 'BYSCORE', 'LIMIT', offset, count) end
  if state == 'stalled' then return redis.call('ZRANGE', keys.locks(queue), '-inf', now, 'BYSCORE', 'LIMIT', offset, count) end
  if state == 'scheduled' then
    local due = place.due(queue, now)
    return redis.call('ZRANGE', keys.scheduled(queue), due + offset, due + last)
  end
  if state == 'depends' then return redis.call('ZRANGE', keys.depends(queue), offset, last) end
  if state == 'recurring' then return redis.call('ZRANGE', keys.recur(queue), offset, last) end
  refusal.argument('state', state, 'must be one of waiting, running, stalled, scheduled, depends, recurring, complete')
end

-- Those in work, then those that are due.
function listing.waiting(queue, now, offset, count)
  local jids = redis.call('ZRANGE', keys.work(queue), offset, offset + count - 1, 'REV')
  if #jids < count then
    local from = math.max(0, offset - redis.call('ZCARD', keys.work(queue)))
    for _, jid in ipairs(redis.call('ZRANGE', keys.scheduled(queue), '-inf', now, 'BYSCORE', 'LIMIT', from, count - #jids)) do
      jids[#jids + 1] = jid
    end
  end
  return jids
end

function listing.held(worker, now)
  local jobs = redis.call('ZRANGE', keys.held(worker), now + 8640000, now, 'BYSCORE', 'REV', 'LIMIT', 0, 1000)
  local stalled = redis.call('ZRANGE', keys.held(worker), now, 0, 'BYSCORE', 'REV', 'LIMIT', 0, 1000)
  return '{"jobs":' .. json.texts(jobs) .. ',"stalled":' .. json.texts(stalled) .. '}'
end
