-- results: results of handlers, kept for a while if the job asks for it.

-- The argument of a completion: TTL in seconds, and JSON.
function results.parse(text)
  local seconds, value = string.match(text, '^(%d+) (.+)$')
  if not value or #seconds > 10 or tonumber(seconds) == 0 then
    errors.bad_argument('result', text, 'must have the form `seconds json`')
  end
  if not pcall(cjson.decode, json.drop_surrogates(value)) then
    errors.bad_argument('result', value, 'is not JSON')
  end
  return {seconds = seconds, value = value}
end

-- Stored with the fence of the run, which tells it from the result of a later run.
function results.store(job, result)
  redis.call('SET', keys.result(job.jid), (job.fence or '0') .. ' ' .. result.value, 'EX',
    result.seconds)
end

-- A job is complete: its result is kept until those have ended that take it. `deleted`: none can.
function results.keep(jid, deleted)
  if deleted then
    redis.call('UNLINK', keys.takers(jid))
  elseif redis.call('EXISTS', keys.takers(jid)) == 1 then
    redis.call('PERSIST', keys.result(jid))
  end
end

-- A job that takes results has ended. Those that no other takes expire.
function results.let_go(jid, takes)
  for other, seconds in pairs(takes) do
    if redis.call('SREM', keys.takers(other), jid) == 1
      and redis.call('EXISTS', keys.takers(other)) == 0 then
      redis.call('EXPIRE', keys.result(other), string.format('%.0f', math.max(1, seconds)))
    end
  end
end

-- A job's constraints `before` are replaced by its `own`, of the JSON `text`: return that of those
-- which it has now. Whether others take its result is up to them.
function results.replace(jid, before, own, text)
  if before.takes then
    for other in pairs(own.takes or {}) do before.takes[other] = nil end
    results.let_go(jid, before.takes)
  end
  if not before.taken or own.taken then return text end
  own.taken = true
  return '{"taken":true' .. (text == '{}' and '' or ',') .. string.sub(text, 2)
end

-- The JSON of a job's result; or nil, the reason, and the job's state if it exists. A result may
-- outlive its job.
function results.read(jid)
  local job = redis.pcall('HMGET', keys.job(jid), 'state', 'x-fence')
  if job.err then record.check_type(jid) end
  if job[1] and job[1] ~= 'complete' then return nil, 'the job is not complete', job[1] end
  local fence, text = string.match(redis.call('GET', keys.result(jid)) or '', '^(%d+) (.*)$')
  if not fence then
    return nil,
      job[1] and 'the job keeps no result, or it has expired'
      or 'neither the job nor a result of it exists', job[1] or nil
  end
  if job[2] and job[2] ~= fence then return nil, 'its latest run has no stored result', job[1] end
  return text
end
