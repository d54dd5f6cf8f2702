-- failed_expiry: delete failed jobs whose retention is over.

local LATER = 3600

-- Delete a job if it is still failed; one with dependents is looked at again later.
function failed_expiry.delete(jid, now)
  local job = record.find(jid)
  if not job or job.state ~= 'failed' then return end
  if redis.call('EXISTS', keys.dependents(jid)) == 0 then return cancellation.delete(job, true) end
  notes.schedule('failed expired', jid, now + LATER)
end
