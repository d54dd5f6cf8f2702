-- max_length: the maximum length of a queue (backpressure). It applies to puts; retries, advances
-- and recurring jobs are always accepted.

local most_of = {}

-- Refuse a job that would exceed the maximum length, after `ahead` others of this call. A job that
-- is in the queue already is accepted.
function max_length.check(queue, jid, ahead)
  if most_of[queue] == nil then
    most_of[queue] = tonumber(redis.call('HGET', keys.config(), queue .. '-max-length')) or 0
  end
  if most_of[queue] <= 0 or redis.call('HGET', keys.job(jid), 'queue') == queue then return end
  local length = redis.call('ZCARD', keys.waiting(queue)) + redis.call('ZCARD', keys.locks(queue))
    + redis.call('ZCARD', keys.scheduled(queue)) + redis.call('ZCARD', keys.depends(queue))
  if length + (ahead or 0) >= most_of[queue] then
    errors.raise('FULL', 'the queue has reached its maximum length', {
      queue = queue, length = length, limit = most_of[queue],
    })
  end
end
