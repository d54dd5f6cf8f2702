-- failed_expiry: delete failed jobs whose retention is over.

local LATER = 3600
local PORTION = 20

-- Delete failed jobs whose retention is over, except those with dependents.
function failed_expiry.prune(now)
  local old = redis.call('ZRANGE', keys.failed_expiry(), '-inf', now, 'BYSCORE', 'LIMIT', 0,
    PORTION)
  for _, jid in ipairs(old) do
    redis.call('ZREM', keys.failed_expiry(), jid)
    local job = record.find(jid)
    if job and job.state == 'failed' then
      if redis.call('EXISTS', keys.dependents(jid)) == 0 then
        cancellation.delete(job, true)
      else
        redis.call('ZADD', keys.failed_expiry(), now + LATER, jid)
      end
    end
  end
end
