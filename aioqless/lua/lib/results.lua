-- results: what handlers returned, kept for a while by those jobs that ask for it.

-- What a completion says: the seconds to keep a result, and its JSON.
function results.parse(text)
  local seconds, value = string.match(text, '^(%d+) (.+)$')
  if not value or #seconds > 10 or tonumber(seconds) == 0 then errors.bad_argument('result', text, 'is not of the form seconds json') end
  if not pcall(cjson.decode, json.drop_surrogates(value)) then errors.bad_argument('result', value, 'is not JSON') end
  return {seconds = seconds, value = value}
end

-- With it goes the number of the run, by which is seen that it is not that of a later one.
function results.store(job, result)
  redis.call('SET', keys.result(job.jid), (job.fence or '0') .. ' ' .. result.value, 'EX', result.seconds)
end

-- The JSON of a job's result; nil and why not.  One that outlived its job is there still.
function results.read(jid)
  local job = redis.call('HMGET', keys.job(jid), 'state', 'x-fence')
  if job[1] and job[1] ~= 'complete' then return nil, 'the job is not complete' end
  local fence, text = string.match(redis.call('GET', keys.result(jid)) or '', '^(%d+) (.*)$')
  if not fence then return nil, job[1] and 'no result is kept of it, or no longer' or 'there is neither the job nor a result of it' end
  if job[2] and job[2] ~= fence then return nil, 'no result is kept of its latest run' end
  return text
end
