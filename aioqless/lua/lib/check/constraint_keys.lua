-- constraint_keys: check the keys of uniqueness, concurrency limits, rate limits, fair turns and
-- bulks.

-- Entries with a time limit expire by themselves; others have no effect once their job has ended.
function constraint_keys.check_unique(here, key)
  local ends, jid = uniqueness.read_entry(key)
  local job = jid and redis.call('HMGET', keys.job(jid), 'state', 'x-constraints')
  if ends and redis.call('TTL', here.key) ~= -1 then return 1 end
  if ends or not job or job[1] == 'complete' or job_constraints.read(job[2]).unique ~= key then
    findings.add('unique-without-job', {key = key, jid = jid},
      function() redis.call('DEL', here.key) end)
  end
  return 1
end

function constraint_keys.check_running(here, key)
  return key_entries.scan_members(here, 'ZSCAN', function(jid)
    if redis.call('HGET', keys.job(jid), 'state') ~= 'running' then
      findings.add('holding-not-running', {jid = jid, key = key}, key_entries.remove(here, jid))
    end
  end)
end

function constraint_keys.check_held_back(here, key)
  return key_entries.scan_members(here, 'ZSCAN', function(jid)
    local job = redis.call('HMGET', keys.job(jid), 'queue', 'x-constraints')
    if not job[1] or not job_constraints.find_limit(job_constraints.read(job[2]), key)
      or not redis.call('ZSCORE', keys.scheduled(job[1]), jid) then
      findings.add('held-back-elsewhere', {jid = jid, key = key}, key_entries.remove(here, jid))
    end
  end)
end

function constraint_keys.check_overdue(here, key)
  return key_entries.scan_members(here, 'ZSCAN', function(jid)
    if not overdue_jobs.read(jid) then
      findings.add('overdue-not-held', {jid = jid, key = key}, key_entries.remove(here, jid))
    end
  end)
end

-- Other clients' pops leave entries behind.
function constraint_keys.check_tenant(here, length, name)
  local queue, tenant = string.sub(name, 1, length), string.sub(name, length + 2)
  local first = here.at == '0' and redis.call('ZRANGE', here.key, -1, -1, 'WITHSCORES') or {}
  if first[1] and redis.call('ZSCORE', keys.waiting(queue), first[1])
    and not redis.call('ZSCORE', keys.turns(queue), tenant) then
    findings.add('tenant-without-turn', {queue = queue, tenant = tenant}, function()
      redis.call('ZADD', keys.turns(queue),
        redis.call('ZRANGE', here.key, 0, 0, 'WITHSCORES')[2], tenant)
    end)
  end
  return key_entries.scan_members(here, 'ZSCAN', function(jid)
    local job = redis.call('HMGET', keys.job(jid), 'priority', 'x-constraints')
    if not turns.is_waiting(queue, jid) or tenant
      ~= turns.name_tenant(tonumber(job[1]) or 0, job_constraints.read(job[2])) then
      findings.add('turn-not-waiting', {jid = jid, queue = queue, tenant = tenant},
        key_entries.remove(here, jid))
    end
  end)
end

-- Other clients' pops leave entries behind.
function constraint_keys.check_bulk(here, length, name)
  local queue, key = string.sub(name, 1, length), string.sub(name, length + 2)
  return key_entries.scan_members(here, 'ZSCAN', function(jid)
    local own = bulks.read(redis.call('HGET', keys.job(jid), 'x-constraints') or nil)
    if not turns.is_waiting(queue, jid) or not own or own.bulk ~= key then
      findings.add('bulk-not-gathering', {jid = jid, queue = queue, key = key},
        key_entries.remove(here, jid))
    end
  end)
end

function constraint_keys.check_starts(here, of)
  if redis.call('TTL', here.key) == -1 then
    findings.add('starts-forever', {of = of}, function()
      redis.call('EXPIRE', here.key, constants.DAY)
    end)
  end
  return 1
end
