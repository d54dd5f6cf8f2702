-- retention: how long ended jobs are kept, and how many, with rules by queue and klass.

-- For how many seconds a job is kept by the rule of its klass, its queue, or all; nil without a
-- rule. `kind`: `jobs` or `failed`.
function retention.find_rule(kind, job)
  if not presence.has('retention_rules') then return nil end
  local option = kind .. '-history'
  local klass = redis.call('HGET', keys.job(job.jid), 'klass') or ''
  local values = redis.call('HMGET', keys.config(), klass .. '-' .. option,
    (job.queue or '') .. '-' .. option, option)
  return tonumber(values[1]) or tonumber(values[2])
    or (kind == 'failed' and tonumber(values[3]) or nil)
end

-- When a job counts as completed. All clients delete it jobs-history seconds later, so a job with a
-- rule of its own gets another time.
function retention.compute_completed_at(job, now)
  local own = retention.find_rule('jobs', job)
  return own and now + own - config.jobs_history() or now
end

-- Schedule the deletion of a failed job, if a rule says so.
function retention.schedule_failed(job, now)
  local own = retention.find_rule('failed', job)
  if own then
    notes.schedule('failed expired', job.jid, now + own)
  elseif presence.has('retention_rules') then
    -- A peer may have failed it again after it expired elsewhere.
    notes.remove('failed expired', job.jid)
  end
end

-- Delete completed jobs that are too old or too many, at most `most`.
function retention.prune_completed(now, most)
  local completed = keys.completed()
  local old = redis.call('ZRANGE', completed, '-inf', now - config.jobs_history(),
    'BYSCORE', 'LIMIT', '0', most)
  if #old > 0 then retention.delete(old) end
  local over = math.min(redis.call('ZCARD', completed) - config.jobs_history_count(),
    most - #old)
  if over > 0 then retention.delete(redis.call('ZRANGE', completed, 0, over - 1)) end
end

function retention.delete(jids)
  if #jids == 0 then return end
  local gone = {}
  for _, jid in ipairs(jids) do
    local job = redis.call('HMGET', keys.job(jid), 'state', 'tags')
    if job[1] == 'complete' then
      if archive.is_on() then archive_backfill.append(record.read(jid)) end
      if job[2] ~= '[]' then tagging.detach(jid, json.parse_texts(job[2])) end
      gone[#gone + 1] = keys.job(jid)
      gone[#gone + 1] = keys.history(jid)
    end
  end
  redis.call('ZREM', keys.completed(), unpack(jids))
  if #gone > 0 then redis.call('UNLINK', unpack(gone)) end
end
