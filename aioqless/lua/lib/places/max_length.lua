-- max_length: the maximum length of a queue (backpressure). It applies to puts; retries, advances
-- and recurring jobs are always accepted.

-- Refuse a job that would exceed the maximum length, after `ahead` others of this call. A job that
-- is in the queue already is accepted.
function max_length.check(queue, jid, ahead)
  local most = config.max_length(queue)
  if most <= 0 or redis.call('HGET', keys.job(jid), 'queue') == queue then return end
  local length = redis.call('ZCARD', keys.waiting(queue)) + redis.call('ZCARD', keys.locks(queue))
    + redis.call('ZCARD', keys.scheduled(queue)) + redis.call('ZCARD', keys.depends(queue))
  if length + (ahead or 0) >= most then
    errors.raise('FULL', 'the queue has reached its maximum length', {
      queue = queue, length = length, limit = most,
    })
  end
end
