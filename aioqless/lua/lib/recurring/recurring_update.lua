-- recurring_update: change, pause and resume a recurring job, or run it now.

local MOST_TAGS = 1000

-- The options of an update with their checks, and those that only one kind of schedule has.
local CHECKS = {
  priority = args.priority, retries = args.count, data = args.data, klass = args.name,
  queue = args.name, backlog = args.count, expires_in = args.seconds, ends = args.seconds,
  max_runs = args.count, jitter = args.seconds, data_keys = args.object,
}
local LIMITS = {
  ends = 'x-until', max_runs = 'x-max-runs', jitter = 'x-jitter', expires_in = 'x-expires-in',
}
local TIMES = {
  [false] = {interval = args.interval},
  [true] = {cron = args.name, timezone = args.name, next = args.seconds},
}

-- All pairs are checked before the first is written.
function recurring_update.update(jid, changes)
  local template = recurring_jobs.require(jid)
  local values = recurring_update.parse(template, changes)
  local due = values.next or template.due
  values.next = nil
  values['x-constraints'] = key_changes.merge(
    {constraints = redis.call('HGET', template.key, 'x-constraints')}, values.data_keys)
  values.data_keys = nil
  if values.interval and due then
    local f = redis.call('HMGET', template.key, 'interval', 'x-first')
    if tonumber(f[2]) == due then values['x-first'] = due + values.interval - tonumber(f[1]) end
    due = due + values.interval - (tonumber(f[1]) or values.interval)
  end
  local limits = {}
  for name, field in pairs(LIMITS) do limits[field], values[name] = values[name], nil end
  recurring_end.store(template.key, limits)
  for name, value in pairs(values) do redis.call('HSET', template.key, name, value) end
  if values.backlog then redis.call('HDEL', template.key, 'x-coalesce') end
  if values.interval then redis.call('HDEL', template.key, 'x-was-due') end
  local queue = values.queue or template.queue
  local turns = template.is_cron and keys.ticks() or keys.recurring(queue)
  if template.due and (due ~= template.due or turns ~= template.turns) then
    redis.call('ZREM', template.turns, jid)
    recurring_end.schedule_next(turns, queue, jid, due)
  end
  if next(limits) and not template.paused then
    recurring_update.apply_limits(template, turns, queue, jid, due)
  end
  if values.queue then queue_sets.register_queue(values.queue, args.time('now')) end
  return '1'
end

-- End a recurring job that is over by its new limits, or let one that had ended continue.
function recurring_update.apply_limits(template, turns, queue, jid, due)
  local now = args.time('now')
  due = due or now + (tonumber(redis.call('HGET', template.key, 'interval')) or 0)
  if template.ended or recurring_end.is_over(template.key, due) then
    recurring_end.schedule_or_finish(template.key, turns, queue, jid, due, now)
  end
end

function recurring_update.parse(template, changes)
  if #changes % 2 == 1 then errors.bad_argument(changes[#changes], nil, 'has no value') end
  local values = {}
  for i = 1, #changes, 2 do
    local name, value = changes[i], changes[i + 1]
    local check = CHECKS[name] or TIMES[template.is_cron][name]
    if not check then
      errors.bad_argument(name, value, 'is not an option of a recurring job that can be changed')
    end
    values[name] = LIMITS[name] and value == 'none' and value or check(name, value)
  end
  if (values.cron or values.timezone) and not values.next then
    errors.bad_argument('next', nil, 'is required with another cron or timezone')
  end
  return values
end

-- Only the recurring job's own list: instances get their tags when they are created.
function recurring_update.change_tags(jid, tags, on)
  local key = recurring_jobs.require(jid).key
  local named, list, has = {}, {}, {}
  for _, tag in ipairs(tags) do named[tag] = true end
  for _, tag in ipairs(json.parse_texts(redis.call('HGET', key, 'tags'))) do
    has[tag] = true
    if on or not named[tag] then list[#list + 1] = tag end
  end
  for _, tag in ipairs(tags) do
    if on and not has[tag] then
      has[tag] = true
      list[#list + 1] = tag
    end
  end
  if on and #list > MOST_TAGS then
    errors.bad_argument('tags', list[#list],
      'exceeds the maximum number of tags of a recurring job: ' .. MOST_TAGS)
  end
  redis.call('HSET', key, 'tags', json.texts(list))
  return list
end

-- Remove it from its schedule, so that no client creates instances, peers included.
function recurring_update.pause(jid, now)
  local template = recurring_jobs.require(jid)
  redis.call('ZREM', template.turns, jid)
  redis.call('HSET', template.key, 'x-paused', now)
  if template.due then redis.call('HSET', template.key, 'x-was-due', template.due) end
  redis.call('ZADD', keys.paused_recurring(), 'NX', now, jid)
  return '1'
end

-- Instances missed meanwhile are not replayed: the schedule restarts, unless it was due later.
function recurring_update.resume(jid, now, next)
  local template = recurring_jobs.require(jid)
  if template.is_cron and not next then
    errors.bad_argument('next', nil, 'is required for a recurring job with a cron expression')
  end
  if template.ended then
    errors.raise('BADSTATE', 'the recurring job has ended: change its until or max_runs', {
      jid = jid,
    })
  end
  local f = redis.call('HMGET', template.key, 'interval', 'x-was-due')
  redis.call('HDEL', template.key, 'x-paused', 'x-was-due')
  redis.call('ZREM', keys.paused_recurring(), jid)
  if not template.due then
    local due = tonumber(f[2]) or 0
    if due <= now then due = now + (tonumber(f[1]) or 0) end
    recurring_end.schedule_or_finish(template.key, template.turns, template.queue, jid,
      template.is_cron and next or due, now)
  end
  return '1'
end

-- Put an instance now; the schedule is not affected. Return the instance's jid.
function recurring_update.run_now(jid, now)
  local template = recurring_jobs.require(jid)
  local f = redis.call('HMGET', template.key, 'klass', 'data', 'priority', 'tags', 'retries')
  if not f[1] then errors.raise('BADSTATE', 'the recurring job has no klass', {jid = jid}) end
  local instance = recurring_spawn.create_instance(template.key, jid, template.queue, f, now, now,
    0, {})
  if not instance then
    errors.raise('BADSTATE', 'too many jids of former instances are in use; call again', {
      jid = jid,
    })
  end
  redis.call('HINCRBY', template.key, 'x-uncounted', 1)
  queue_sets.register_queue(template.queue, now)
  return instance
end
