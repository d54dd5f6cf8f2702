-- failure_groups: check that failure groups list exactly the jobs that failed in them.

local SHORT = 2000
local WINDOW = 500
local PORTION = 100

-- Scan a list from its tail, the oldest entry: new failures are added at its head.
function failure_groups.check_list(here, group)
  local from = tonumber(here.at)
  if from == 0 and redis.call('SISMEMBER', keys.failures(), group) == 0 then
    findings.add('group-unknown', {group = group},
      function() redis.call('SADD', keys.failures(), group) end)
  end
  local jids = redis.call('LRANGE', here.key, -from - math.min(here.most, PORTION), -from - 1)
  local length, seen = redis.call('LLEN', here.key), {}
  for i = #jids, 1, -1 do
    local job = redis.call('HMGET', keys.job(jids[i]), 'state', 'failure')
    if job[1] ~= 'failed' or failures.group_of(job[2]) ~= group then
      findings.add('not-failed-in-group', {jid = jids[i], group = group},
        failure_groups.remove(here, group, jids[i]))
    elseif seen[jids[i]] then
      findings.add('twice-in-group', {jid = jids[i], group = group},
        failure_groups.remove(here, group, jids[i]))
    end
    seen[jids[i]] = true
  end
  local removed = length - redis.call('LLEN', here.key)
  return 1 + #jids, from + #jids < length and string.format('%.0f', from + #jids - removed) or nil
end

-- Delete the entry nearest to the tail: an earlier wrong one would have been deleted before.
function failure_groups.remove(here, group, jid)
  return function()
    redis.call('LREM', here.key, -1, jid)
    failures.drop_empty_group(group)
  end
end

function failure_groups.check_branches(here)
  if failure_jobs.read_review() then key_entries.check_review(here, 'review failures', '') end
  return 1
end

function failure_groups.check_names(here)
  return key_entries.scan_members(here, 'SSCAN', function(group)
    if redis.call('EXISTS', keys.group(group)) == 0 then
      findings.add('group-empty', {group = group},
        function() redis.call('SREM', keys.failures(), group) end)
    end
  end)
end

-- Whether a group lists a job, and what it cost to find out.
function failure_groups.has(group, jid, failure)
  local key = keys.group(group)
  local length = redis.call('LLEN', key)
  if length > SHORT
    and failure_groups.has_by_time(key, length, jid, tonumber(json.parse_object(failure).when)) then
    return true, 10
  end
  return redis.call('LPOS', key, jid) ~= false, math.floor(length / 200)
end

-- Search a long list, newest at the head, by when jobs failed: bisect until the window is small.
function failure_groups.has_by_time(key, length, jid, when)
  local low, high = 0, length
  while when and high - low > WINDOW do
    local middle = math.floor((low + high) / 2)
    local other =
      tonumber(json.parse_object(redis.call('HGET', keys.job(redis.call('LINDEX', key, middle)),
      'failure')).when)
    if not other or other == when then
      low, high = middle - WINDOW / 2, middle + WINDOW / 2
    elseif other > when then
      low = middle
    else
      high = middle
    end
  end
  for _, found in ipairs(redis.call('LRANGE', key, math.max(0, low), high)) do
    if found == jid then return true end
  end
  return false
end
