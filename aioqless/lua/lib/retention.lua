-- retention: completed jobs are kept for a while, and not too many of them.

-- Delete completed jobs that are too old or too many, at most so many of them.
function retention.prune(now, most)
  local completed = keys.completed()
  local old = redis.call('ZRANGE', completed, '-inf', now - config.number('jobs-history'), 'BYSCORE', 'LIMIT', 0, most)
  retention.delete(old)
  local over = math.min(redis.call('ZCARD', completed) - config.number('jobs-history-count'), most - #old)
  if over > 0 then retention.delete(redis.call('ZRANGE', completed, 0, over - 1)) end
end

function retention.delete(jids)
  for _, jid in ipairs(jids) do
    local job = redis.call('HMGET', keys.job(jid), 'state', 'tags')
    redis.call('ZREM', keys.completed(), jid)
    if job[1] == 'complete' then
      tagging.detach(jid, json.parsed_list(job[2]))
      redis.call('UNLINK', keys.job(jid), keys.history(jid))
    end
  end
end
