-- job_indexes: check what lists jobs: workers' lists, the set of completed jobs, tags, counters.

function job_indexes.check_worker_jobs(here, worker)
  return key_entries.scan_members(here, 'ZSCAN', function(jid)
    local job = redis.call('HMGET', keys.job(jid), 'state', 'worker')
    if job[1] ~= 'running' or job[2] ~= worker then
      findings.add('held-not-running', {jid = jid, worker = worker}, key_entries.remove(here, jid))
    end
  end)
end

function job_indexes.check_completed(here)
  return key_entries.scan_members(here, 'ZSCAN', function(jid)
    if redis.call('HGET', keys.job(jid), 'state') ~= 'complete' then
      findings.add('entry-not-complete', {jid = jid}, key_entries.remove(here, jid))
    end
  end)
end

function job_indexes.check_tag(here, tag)
  if here.at == '0' and not redis.call('ZSCORE', keys.tags(), tag) then
    job_indexes.report_tag_count(tag, nil)
  end
  return key_entries.scan_members(here, 'ZSCAN', function(jid)
    for _, name in ipairs(json.parse_texts(redis.call('HGET', keys.job(jid), 'tags'))) do
      if name == tag then return end
    end
    findings.add('tag-not-on-job', {jid = jid, tag = tag}, function()
      redis.call('ZREM', here.key, jid)
      job_indexes.set_tag_count(tag)
    end)
  end)
end

function job_indexes.check_tag_counts(here)
  return key_entries.scan_members(here, 'ZSCAN', function(tag, count)
    if tonumber(count) ~= redis.call('ZCARD', keys.tag(tag)) then
      job_indexes.report_tag_count(tag, tonumber(count))
    end
  end)
end

function job_indexes.report_tag_count(tag, count)
  local jobs = redis.call('ZCARD', keys.tag(tag))
  findings.add('tag-count', {tag = tag, count = count, jobs = jobs},
    function() job_indexes.set_tag_count(tag) end)
end

function job_indexes.set_tag_count(tag)
  redis.call('ZADD', keys.tags(), redis.call('ZCARD', keys.tag(tag)), tag)
end

-- Check one kind of a day's statistics, named like `wait:86400`. Statistics beyond their retention
-- are no finding: another call would have pruned them.
function job_indexes.check_day(here, of, queue)
  local kind, day = string.match(of, '^(%l+):(%d+)$')
  if kind == 'stats' then job_indexes.check_failed_count(here) end
  if findings.is_resolving() then
    stats_pruning.prune_day(here.key, kind, tonumber(day), here.now)
  end
  return 1
end

function job_indexes.check_failed_count(here)
  local counters = redis.call('HMGET', here.key, 'failed', 'failures')
  local failed, failures = tonumber(counters[1]) or 0, tonumber(counters[2]) or 0
  local right = math.max(0, math.min(failed, failures))
  if failed ~= right then
    findings.add('failed-count', {key = here.key, failed = failed, failures = failures}, function()
      redis.call('HSET', here.key, 'failed', right)
    end)
  end
end

function job_indexes.check_steps(here, jid)
  if not steps.are_needed(jid) then
    findings.add('steps-without-job', {jid = jid}, function() steps.delete(jid) end)
  else
    key_entries.check_review(here, 'review steps', jid)
  end
  return 1
end

function job_indexes.check_expiry(here, _, _, problem, seconds)
  if redis.call('TTL', here.key) == -1 then
    findings.add(problem, {key = here.key}, function() redis.call('EXPIRE', here.key, seconds) end)
  end
  return 1
end

-- A result that others are to take doesn't expire.
function job_indexes.check_result(here, jid)
  if redis.call('EXISTS', keys.takers(jid)) == 1 then return 1 end
  return job_indexes.check_expiry(here, nil, nil, 'result-forever', constants.DAY)
end

-- Other clients' completions leave entries behind.
function job_indexes.check_takers(here, jid)
  return key_entries.scan_members(here, 'SSCAN', function(other)
    local job = redis.call('HMGET', keys.job(other), 'state', 'x-constraints')
    local takes = job_constraints.read(job[2]).takes
    if job[1] == 'complete' or not takes or not takes[jid] then
      findings.add('taker-ended', {jid = other, of = jid}, function()
        results.let_go(other, {[jid] = constants.DAY})
      end)
    end
  end)
end
