-- reservations: jobs that are reserved for people (human tasks). A person is a worker, `name` or
-- `name@session`. The lock is an ordinary one, but lasts for a chosen time, and letting it expire
-- is no failure.

local LONGEST = 86400
local LOOKS = 100
local MOST_SKIPPED = 200
local REMEMBERED = 604800

function reservations.check_limit(limit)
  if limit > LONGEST then errors.bad_argument('limit', limit, 'is longer than a day') end
end

-- Give a run to a person until `expires`. (A run is identified by fence and worker, since peers pop
-- without a fence.)
function reservations.assign(jid, queue, worker, fence, expires, now)
  record.set_fields(jid, 'worker', worker, 'expires', json.number(expires), 'x-fence', fence,
    'x-reserved', fence .. ' ' .. worker)
  locks.store(queue, jid, worker, json.number(expires))
  redis.call('ZADD', keys.workers(), now, worker)
end

-- The job that a person has reserved in this queue and that has not expired. What a machine of the
-- same name runs doesn't count.
function reservations.find_current(queue, worker, now)
  for _, jid in ipairs(redis.call('ZRANGE', keys.worker_jobs(worker), '(' .. json.number(now),
    '+inf', 'BYSCORE', 'LIMIT', 0, LOOKS)) do
    local job = record.read(jid)
    local reserved = redis.call('HGET', keys.job(jid), 'x-reserved')
    if job and job.state == 'running' and job.queue == queue and reserved == (job.fence or '')
      .. ' ' .. worker then
      return job
    end
  end
end

-- Pass a run on to another worker, as a run of its own.
function reservations.transfer(job, worker, limit, now)
  redis.call('ZREM', keys.worker_jobs(job.worker), job.jid)
  if job.grace then record.delete_fields(job.jid, 'grace') end
  record.set_fields(job.jid, 'time', record.format_time(now))
  reservations.assign(job.jid, job.queue, worker, json.number(redis.call('INCR', keys.fence())),
    now + limit, now)
end

-- The job that was handed over to a person goes to the first session of the person that asks.
function reservations.take_handed_over(queue, person, worker, limit, now)
  local job = person ~= worker and reservations.find_current(queue, person, now)
  if not job then return nil end
  reservations.transfer(job, worker, limit, now)
  history.append(job.jid, job, now, 'popped', cjson.encode({worker = worker}))
  return job.jid
end

-- Lock the next job for a person, except those that the person skipped. Return its jid, and how
-- many were passed over.
function reservations.take_next(queue, person, worker, limit, now, again)
  local hidden = again and {} or reservations.hide_skipped(queue, person, now)
  local jid = pop.take(queue, {worker = worker}, 1, now)[1]
  for _, entry in ipairs(hidden) do redis.call('ZADD', unpack(entry)) end
  if jid then
    redis.call('ZREM', keys.skipped(person), jid)
    reservations.assign(jid, queue, worker, redis.call('HGET', keys.job(jid), 'x-fence'),
      now + limit, now)
  end
  return jid, #hidden
end

-- Remove skipped jobs from the queue for the length of this call, and forget those that have ended.
function reservations.hide_skipped(queue, person, now)
  local hidden = {}
  for _, jid in ipairs(redis.call('ZRANGE', keys.skipped(person), 0, MOST_SKIPPED)) do
    local place, ends = redis.call('ZSCORE', keys.waiting(queue), jid),
      redis.call('ZSCORE', keys.locks(queue), jid)
    if place then
      hidden[#hidden + 1] = {keys.waiting(queue), place, jid}
      redis.call('ZREM', keys.waiting(queue), jid)
    elseif ends and tonumber(ends) <= now then
      hidden[#hidden + 1] = {keys.locks(queue), ends, jid}
      redis.call('ZREM', keys.locks(queue), jid)
    elseif not ends then
      local state = redis.call('HGET', keys.job(jid), 'state')
      if not state or state == 'complete' then redis.call('ZREM', keys.skipped(person), jid) end
    end
  end
  return hidden
end

function reservations.remember_skipped(person, jid, now)
  redis.call('ZADD', keys.skipped(person), now, jid)
  redis.call('ZREMRANGEBYRANK', keys.skipped(person), 0, -MOST_SKIPPED - 1)
  redis.call('EXPIRE', keys.skipped(person), REMEMBERED)
end

-- A reservation as callers see it. `jid` may come from an earlier answer, and the job may be
-- another's by now.
function reservations.view(jid, worker, skipped, now)
  local job = jid ~= '' and redis.call('HMGET', keys.job(jid), 'state', 'worker') or {}
  local shown = job[1] == 'running' and job[2] == worker and view.encode(jid, 1) or 'null'
  return '{"job":' .. shown .. ',"skipped":' .. skipped .. ',"now":' .. json.number(now) .. '}'
end
