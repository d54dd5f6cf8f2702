-- key_types: what each key of a namespace may hold, by its name; and the checks of queues' sets.
-- Each check returns its cost and, if it is not finished with the key, a cursor to continue from.

local PORTION = 100

local FAMILIES = {
  {'hash', '^j:(.*)$', function(here, jid) return job_fields.check(jid, here.now) end},
  {'list', '^j:(.*)%-history$', function(here, jid) return key_types.check_history(here, jid) end},
  {
    'set', '^j:(.*)%-dependencies$',
    function(here, jid) return dependency_links.check_dependencies(here, jid) end,
  },
  {
    'set', '^j:(.*)%-dependents$',
    function(here, jid) return dependency_links.check_dependents(here, jid) end,
  },
  {
    'zset', '^q:(.*)%-(work)$',
    function(here, queue, kind) return key_types.check_queue(here, queue, kind) end,
  },
  {
    'zset', '^q:(.*)%-(scheduled)$',
    function(here, queue, kind) return key_types.check_queue(here, queue, kind) end,
  },
  {
    'zset', '^q:(.*)%-(locks)$',
    function(here, queue, kind) return key_types.check_queue(here, queue, kind) end,
  },
  {
    'zset', '^q:(.*)%-(depends)$',
    function(here, queue, kind) return key_types.check_queue(here, queue, kind) end,
  },
  {
    'zset', '^q:(.*)%-(recur)$',
    function(here, queue, kind) return key_types.check_queue(here, queue, kind) end,
  },
  {'hash', '^r:(.+)$', function(here, jid) return recurring_entries.check_interval(here, jid) end},
  {
    'zset', '^w:(.*):jobs$',
    function(here, worker) return job_indexes.check_worker_jobs(here, worker) end,
  },
  {'zset', '^completed$', function(here) return job_indexes.check_completed(here) end},
  {'zset', '^t:(.*)$', function(here, tag) return job_indexes.check_tag(here, tag) end},
  {'zset', '^tags$', function(here) return job_indexes.check_tag_counts(here) end},
  {'list', '^f:(.*)$', function(here, group) return failure_groups.check_list(here, group) end},
  {'set', '^failures$', function(here) return failure_groups.check_names(here) end},
  {
    'hash', '^s:(%l+:%d+):(.*)$',
    function(here, day, queue) return job_indexes.check_day(here, day, queue) end,
  },
  {'set', '^x:todo$', function(here) return dependency_links.check_notes(here) end},
  {'set', '^x:fallen$', function(here) return dependency_links.check_notes(here) end},
  {
    'set', '^x:left:(.*)$',
    function(here, note) return dependency_links.check_deferred_jids(here, note) end,
  },
  {
    'string', '^x:request:',
    function(here) return job_indexes.check_expiry(here, 'answer-forever', 120) end,
  },
  {'hash', '^x:cron:(.+)$', function(here, jid) return recurring_entries.check_cron(here, jid) end},
  {'zset', '^x:ticks$', function(here) return recurring_entries.check_ticks(here) end},
  {'zset', '^x:resting$', function(here) return recurring_entries.check_paused(here) end},
  {
    'string', '^x:result:',
    function(here) return job_indexes.check_expiry(here, 'result-forever', 86400) end,
  },
  {
    'string', '^x:unique:(.+)$',
    function(here, key) return constraint_keys.check_unique(here, key) end,
  },
  {
    'zset', '^x:holding:(.+)$',
    function(here, key) return constraint_keys.check_running(here, key) end,
  },
  {
    'zset', '^x:held:(.+)$',
    function(here, key) return constraint_keys.check_held_back(here, key) end,
  },
  {'zset', '^x:starts:(.+)$', function(here, of) return constraint_keys.check_starts(here, of) end},
  {'stream', '^x:archive$', function() return 1 end},
  {
    'zset', '^x:skipped:',
    function(here) return job_indexes.check_expiry(here, 'skipped-forever', 604800) end,
  },
  {'hash', '^x:pruned$', function(here) return job_indexes.delete_obsolete(here) end},
}

function key_types.check(here)
  local kind, name, known = redis.call('TYPE', here.key).ok, string.sub(here.key, #ns + 2), false
  for _, family in ipairs(FAMILIES) do
    local first, second = string.match(name, family[2])
    if first and family[1] == kind then return family[3](here, first, second) end
    known = known or first
  end
  if known and kind ~= 'none' then findings.add('wrong-type', {key = here.key, type = kind}) end
  return 1
end

-- Call `look` with a portion of a set's members, and their scores if any.
function key_types.scan_members(here, command, look)
  local step = redis.call(command, here.key, here.at, 'COUNT', math.min(here.most, PORTION))
  local width = command == 'SSCAN' and 1 or 2
  for i = 1, #step[2], width do look(step[2][i], step[2][i + 1]) end
  return 1 + #step[2] / width, step[1] ~= '0' and step[1] or nil
end

-- A repair that removes a member from the sorted set being checked.
function key_types.remove(here, member)
  return function() redis.call('ZREM', here.key, member) end
end

function key_types.check_history(here, jid)
  if redis.call('EXISTS', keys.job(jid)) == 0 then
    findings.add('history-without-job', {jid = jid}, function() redis.call('UNLINK', here.key) end)
  end
  return 1
end

function key_types.check_queue(here, queue, kind)
  if here.at == '0' and queue ~= '' and not redis.call('ZSCORE', keys.queues(), queue) then
    findings.add('queue-unknown', {queue = queue},
      function() queue_sets.register_queue(queue, here.now) end)
  end
  local look = kind == 'recur' and recurring_entries.check_entry or key_types.check_entry
  return key_types.scan_members(here, 'ZSCAN', function(jid) look(here, queue, kind, jid) end)
end

function key_types.check_entry(here, queue, kind, jid)
  local at_home = redis.call('HGET', keys.job(jid), 'queue')
  if at_home == queue then return end
  local about = {jid = jid, queue = queue, place = kind}
  if not at_home and redis.call('EXISTS', keys.job(jid)) == 0 then
    findings.add('entry-without-job', about, key_types.remove(here, jid))
  else
    findings.add('entry-of-other-queue', about, function()
      redis.call('ZREM', here.key, jid)
      job_fields.check(jid, here.now)
    end)
  end
end
