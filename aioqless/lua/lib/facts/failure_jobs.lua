-- failure_jobs: the jobs that a failure is to put: the failed job's own (the option on_failure),
-- and its handler's, which workers declare by klass.

-- Set the branch of a job.
function failure_jobs.set(jid, text, now)
  record.set_fields(jid, 'x-on-failure', text)
  failure_jobs.note_use(now)
end

-- Note that failures matter, also those of other clients: from now on they are looked for.
function failure_jobs.note_use(now)
  if redis.call('HSETNX', keys.on_failure(), '', '{"used":' .. json.number(now) .. '}') == 1 then
    notes.schedule('review failures', '', now + constants.REVIEW_INTERVAL)
  end
end

-- Since when failures matter (`used`), and how far their review has come (lib/agenda/review.lua);
-- nil if they don't matter.
function failure_jobs.read_review()
  local text = redis.call('HGET', keys.on_failure(), '')
  return text and json.parse_object(text)
end

function failure_jobs.store_review(at)
  redis.call('HSET', keys.on_failure(), '', cjson.encode(at))
end

-- Declare the branch of all jobs of a klass; it counts for failures from the first declaration on.
function failure_jobs.declare(klass, text, now)
  local since = string.match(redis.call('HGET', keys.on_failure(), klass) or '', '^%S+')
  redis.call('HSET', keys.on_failure(), klass, (since or string.format('%.6f', now)) .. ' ' .. text)
  failure_jobs.note_use(now)
end

-- Note what follows from the failure of a job with these fields (`x-cascade`, `x-on-failure`,
-- `klass`), if anything does; `when`: of one that another client stored earlier.
function failure_jobs.note_failure(failure, fields, when)
  local declared = redis.call('HGET', keys.on_failure(), fields[3] or '')
  if when and declared and when <= tonumber(string.match(declared, '^%S+')) then declared = nil end
  if not (fields[1] or fields[2] or declared) then return end
  failure.cascade, failure.own, failure.klass = fields[1], fields[2], fields[3]
  failure.declared = declared
  notes.store('failed', failure)
end

-- A failure as others get it, with the failed job's data.
function failure_jobs.encode_failure(jid, klass, group, message)
  return '{"jid":' .. cjson.encode(jid) .. ',"klass":' .. cjson.encode(klass or '')
    .. ',"group":' .. cjson.encode(group) .. ',"message":' .. cjson.encode(message) .. ',"data":'
    .. cjson.encode(redis.call('HGET', keys.job(jid), 'data') or 'null') .. '}'
end
