-- key_types: what each key of a namespace may hold, by its name; and the checks of queues' sets.
-- Each check returns its cost and, if it is not finished with the key, a cursor to continue from.

-- The kinds of keys: type, name below the namespace, check, and what the check needs besides.
function key_types.families()
  return {
    {'hash', '^j:(.*)$', job_fields.check},
    {'list', '^j:(.*)%-history$', key_types.check_history},
    {'set', '^j:(.*)%-dependencies$', dependency_links.check_dependencies},
    {'set', '^j:(.*)%-dependents$', dependency_links.check_dependents},
    {'zset', '^q:(.*)%-(work)$', key_types.check_queue},
    {'zset', '^q:(.*)%-(scheduled)$', key_types.check_queue},
    {'zset', '^q:(.*)%-(locks)$', key_types.check_queue},
    {'zset', '^q:(.*)%-(depends)$', key_types.check_queue},
    {'zset', '^q:(.*)%-(recur)$', key_types.check_queue},
    {'hash', '^r:(.+)$', recurring_entries.check_interval},
    {'zset', '^w:(.*):jobs$', job_indexes.check_worker_jobs},
    {'zset', '^completed$', job_indexes.check_completed},
    {'zset', '^t:(.*)$', job_indexes.check_tag},
    {'zset', '^tags$', job_indexes.check_tag_counts},
    {'list', '^f:(.*)$', failure_groups.check_list},
    {'set', '^failures$', failure_groups.check_names},
    {'hash', '^x:on%-failure$', failure_groups.check_branches},
    {'hash', '^s:(%l+:%d+):(.*)$', job_indexes.check_day},
    {'zset', '^x:agenda$', dependency_links.check_agenda},
    {'set', '^x:noted%-jids:(.*)$', dependency_links.check_noted_jids},
    {'set', '^x:stuck:(.*)$', dependency_links.check_stuck},
    {'string', '^x:request:', job_indexes.check_expiry, 'answer-forever', constants.ANSWER_TTL},
    {'hash', '^x:cron:(.+)$', recurring_entries.check_cron},
    {'zset', '^x:ticks$', recurring_entries.check_ticks},
    {'zset', '^x:paused%-recurring$', recurring_entries.check_paused},
    {'string', '^x:result:(.+)$', job_indexes.check_result},
    {'set', '^x:takers:(.+)$', job_indexes.check_takers},
    {'string', '^x:unique:(.+)$', constraint_keys.check_unique},
    {'zset', '^x:limit%-running:(.+)$', constraint_keys.check_running},
    {'zset', '^x:held%-back:(.+)$', constraint_keys.check_held_back},
    {'zset', '^x:overdue:(.+)$', constraint_keys.check_overdue},
    {'string', '^x:limit%-paused:', function() return 1 end},
    {'zset', '^x:rate%-starts:(.+)$', constraint_keys.check_starts},
    {'zset', '^x:tenant:(%d+):(.+)$', constraint_keys.check_tenant},
    {'zset', '^x:bulk:(%d+):(.+)$', constraint_keys.check_bulk},
    {'zset', '^x:turns:', function() return 1 end},
    {'hash', '^x:steps:(.+)$', job_indexes.check_steps},
    {'stream', '^x:output:', job_indexes.check_expiry, 'output-forever', 86400},
    {'hash', '^x:set:(%d+)$', set_members.check_set},
    {'set', '^x:set:(%d+):(%l+)$', set_members.check_place},
    {'stream', '^x:archive$', function() return 1 end},
    {'zset', '^x:skipped:', job_indexes.check_expiry, 'skipped-forever', 604800},
  }
end

-- `families`: those of key_types.families.
function key_types.check(here, families)
  local kind, name, known = redis.call('TYPE', here.key).ok, string.sub(here.key, #ns + 2), false
  for _, family in ipairs(families) do
    local first, second = string.match(name, family[2])
    if first and family[1] == kind then
      return family[3](here, first, second, family[4], family[5])
    end
    known = known or first
  end
  if known and kind ~= 'none' then findings.add('wrong-type', {key = here.key, type = kind}) end
  return 1
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
  return key_entries.scan_members(here, 'ZSCAN', function(jid) look(here, queue, kind, jid) end)
end

function key_types.check_entry(here, queue, kind, jid)
  local at_home = redis.call('HGET', keys.job(jid), 'queue')
  if at_home == queue then return end
  local about = {jid = jid, queue = queue, place = kind}
  if not at_home and redis.call('EXISTS', keys.job(jid)) == 0 then
    findings.add('entry-without-job', about, key_entries.remove(here, jid))
  else
    findings.add('entry-of-other-queue', about, function()
      redis.call('ZREM', here.key, jid)
      job_fields.check(here, jid)
    end)
  end
end
