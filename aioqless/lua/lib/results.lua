-- results: results of handlers, kept for a while if the job asks for it.

-- The argument of a completion: TTL in seconds, and JSON.
function results.parse(text)
  local seconds, value = string.match(text, '^(%d+) (.+)$')
  if not value or #seconds > 10 or tonumber(seconds) == 0 then
    errors.bad_argument('result', text, 'is not of the form seconds json')
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

-- The JSON of a job's result; or nil and the reason. A result may outlive its job.
function results.read(jid)
  local job = redis.call('HMGET', keys.job(jid), 'state', 'x-fence')
  if job[1] and job[1] ~= 'complete' then return nil, 'the job is not complete' end
  local fence, text = string.match(redis.call('GET', keys.result(jid)) or '', '^(%d+) (.*)$')
  if not fence then
    return nil,
      job[1] and 'no result is kept of it, or no longer'
      or 'there is neither the job nor a result of it'
  end
  if job[2] and job[2] ~= fence then return nil, 'no result is kept of its latest run' end
  return text
end
