-- job_sets: create, close and read job sets. What becomes of members is in members.lua, which the
-- scripts that end jobs call.

local MOST_NAME = 400
local SAMPLE = 100
local FAILURES = 500
local GROUPS = 20

-- The number of a set; nil if there is none.
function job_sets.find(name)
  local number = redis.call('ZSCORE', keys.sets(), name)
  return number and string.format('%.0f', number)
end

function job_sets.require(name)
  local set = job_sets.find(name)
  if not set then errors.raise('NOSET', 'there is no such job set', {set = name}) end
  return set
end

-- Refuse a new set with a long name, of which jids are made, and other callbacks than those that
-- are stored; `callbacks` tells them apart.
function job_sets.check(name, callbacks)
  local set = job_sets.find(name)
  if not set and #name > MOST_NAME then
    errors.bad_argument('name', name, 'is longer than ' .. MOST_NAME .. ' bytes')
  end
  if set and callbacks and callbacks ~= redis.call('HGET', keys.set(set), 'callbacks') then
    errors.raise('BADSTATE', 'the callbacks of the job set were stored by its first put or close,'
      .. ' and are others', {set = name})
  end
end

-- The number of a set, which is created if it is new.
function job_sets.open(name, on_end, callbacks, now)
  local set = job_sets.find(name)
  if set then return set end
  set = string.format('%.0f', redis.call('INCR', keys.set_number()))
  redis.call('ZADD', keys.sets(), set, name)
  notes.schedule('review set', set, now + constants.REVIEW_INTERVAL)
  local at = string.format('%.6f', now)
  redis.call('HSET', keys.set(set), 'name', name, 'created', at, 'touched', at, 'added', 0,
    'callbacks', callbacks or '')
  for field, text in pairs(on_end) do redis.call('HSET', keys.set(set), field, text) end
  return set
end

-- Refuse to add to a closed set, unless a run of one of its members does.
function job_sets.check_open(name, member, fence)
  local set = job_sets.find(name)
  if not set or redis.call('HEXISTS', keys.set(set), 'closed') == 0 then return end
  local job = member and record.read(member)
  if not job or job.state ~= 'running' or job.fence ~= fence or not job.constraints
    or job_constraints.read_set(job.constraints) ~= set then
    errors.raise('SETCLOSED', 'the job set is closed: only its running members may add others', {
      set = name,
    })
  end
end

-- Put a member by `write`. Return the jid, and whether it is new in the set. Without `write`, only
-- check that it may be one.
function job_sets.put(set, put, options, write)
  local job = record.find(put.jid)
  local former = job and job.constraints and job_constraints.read_set(job.constraints)
  if former and former ~= set then
    errors.raise('EXISTS', 'the job is a member of another job set', {jid = put.jid})
  end
  if not write then return end
  put.set = set
  local jid = write(put, options)
  if jid ~= put.jid or former then return jid, false end
  record.set_fields(jid, 'x-constraints',
    job_constraints.name_set(redis.call('HGET', keys.job(jid), 'x-constraints'), set))
  if options.depends then policies.mark_through(jid) end
  -- A job that was there already, and is left alone, joins as what it is.
  local place = job and members.find_place(set, jid) or 'open'
  local known = false
  for _, each in ipairs({'open', 'held', 'failed', 'canceled'}) do
    local change = each == place and 'SADD' or 'SREM'
    local changed = redis.call(change, keys.members(set, each), jid) == 1
    known = known or changed == (change == 'SREM')
  end
  return jid, not known
end

function job_sets.close(set, now)
  if redis.call('HSETNX', keys.set(set), 'closed', string.format('%.6f', now)) == 1 then
    notes.store('set changed', set)
  end
end

-- Call `act` with a portion of the members in a place; return the next cursor, '0' at the end, and
-- how often `act` was true.
function job_sets.walk(set, place, cursor, portion, act)
  local step = redis.call('SSCAN', keys.members(set, place), cursor, 'COUNT', portion)
  local count = 0
  for _, jid in ipairs(step[2]) do
    if act(jid) then count = count + 1 end
  end
  return step[1], count
end

-- Retry a failed member in the queue that it failed in.
function job_sets.retry(set, jid, now)
  local job = members.compare(set, jid, 'failed', now) == 'failed' and record.read(jid)
  if not job or job.queue == '' then return false end
  failures.leave_group(job)
  revival.put_back(job, job.queue, now)
  queue_sets.register_queue(job.queue, now)
  return true
end

-- Cancel a member that has not ended. Jobs that depend on it never run: they are canceled as well.
function job_sets.cancel(set, jid, place, now, actor)
  if members.compare(set, jid, place, now) ~= place then return false end
  policies.note_all('canceled', jid, keys.dependents(jid))
  cancellation.delete(record.read(jid), false, now, actor)
  return true
end

-- JSON: the numbers of members by place, and the groups of failed ones.
function job_sets.describe(set)
  local f = redis.call('HMGET', keys.set(set), 'name', 'created', 'closed', 'touched', 'added',
    'then_jid', 'ended_jid')
  local open = redis.call('SCARD', keys.members(set, 'open'))
  return cjson.encode({
    name = f[1], created = tonumber(f[2]), closed = tonumber(f[3]), changed = tonumber(f[4]),
    added = tonumber(f[5]), open = open, running = job_sets.count_running(set, open),
    held = redis.call('SCARD', keys.members(set, 'held')),
    failed = redis.call('SCARD', keys.members(set, 'failed')),
    canceled = redis.call('SCARD', keys.members(set, 'canceled')),
    then_jid = f[6] or nil, ended_jid = f[7] or nil,
  })
end

-- Estimated from a sample if there are many open members.
function job_sets.count_running(set, open)
  local sample = redis.call('SRANDMEMBER', keys.members(set, 'open'), SAMPLE)
  local running = 0
  for _, jid in ipairs(sample) do
    if redis.call('HGET', keys.job(jid), 'state') == 'running' then running = running + 1 end
  end
  return #sample > 0 and math.floor(running * open / #sample + 0.5) or 0
end

-- JSON: the largest failure groups, estimated from a sample if many members have failed.
function job_sets.list_groups(set)
  local sample = redis.call('SRANDMEMBER', keys.members(set, 'failed'), FAILURES)
  local share = redis.call('SCARD', keys.members(set, 'failed')) / math.max(1, #sample)
  local counts, names = {}, {}
  for _, jid in ipairs(sample) do
    local group = failures.group_of(redis.call('HGET', keys.job(jid), 'failure') or '{}') or ''
    if not counts[group] then names[#names + 1] = group end
    counts[group] = (counts[group] or 0) + 1
  end
  table.sort(names, function(a, b)
    return counts[a] > counts[b] or counts[a] == counts[b] and a < b
  end)
  local groups = {}
  for i = 1, math.min(#names, GROUPS) do
    groups[i] = '{"group":' .. cjson.encode(names[i]) .. ',"count":'
      .. string.format('%.0f', counts[names[i]] * share) .. '}'
  end
  return json.list(groups)
end
