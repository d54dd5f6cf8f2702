-- job_fields: check that a job's hash is complete and readable. (Whether it is in the right sets:
-- job_location.lua.)

local MOST_TAGS = 1000

local FIELDS = {
  'jid', 'klass', 'data', 'queue', 'state', 'worker', 'priority', 'tags', 'expires', 'retries',
  'remaining', 'time', 'failure',
}
local TEXTS = {klass = '', queue = '', worker = '', data = '{}', tags = '[]', failure = '{}'}
local NUMBERS = {
  priority = 0, expires = 0, retries = constants.DEFAULT_RETRIES,
  remaining = constants.DEFAULT_RETRIES,
}
local STATES = {
  waiting = true, scheduled = true, depends = true, running = true, stalled = true, failed = true,
  complete = true,
}

-- Return the cost of the check.
function job_fields.check(here, jid)
  local values, job = redis.call('HMGET', keys.job(jid), 'scheduled', 'x-fence', 'x-constraints',
    unpack(FIELDS)), {}
  job.scheduled, job.fence, job.constraints = values[1], tonumber(values[2]), values[3]
  for i, name in ipairs(FIELDS) do job[name] = values[i + 3] end
  local places = job_location.read_sets(jid, job.queue or '')
  job_fields.check_fields(jid, job, places, here.now)
  local work = 3 + job_location.check(jid, job, places, here.now)
  if math.abs(tonumber(job.priority)) > constants.MAX_PRIORITY and job.state ~= 'complete' then
    findings.count('priority-too-great', {jid = jid})
  end
  if job.fence then job_fields.check_fence(jid, job.fence) end
  return work + job_fields.check_tags(jid, json.parse_texts(job.tags), here.now)
end

-- Missing and unreadable fields get their defaults in `job` too, so that the other checks can go
-- on.
function job_fields.check_fields(jid, job, places, now)
  local missing, written = {}, {}
  for _, name in ipairs(FIELDS) do
    if not job_fields.is_readable(jid, job, name) then
      missing[#missing + 1] = name
      job[name] = job_fields.find_default(jid, job, places, name, now)
      written[#written + 1], written[#written + 2] = name, job[name]
    end
  end
  job.worker, job.expires = job.worker or '', job.expires or 0
  if #missing == 0 then return end
  local lacking = table.concat(missing, ', ')
  findings.add('fields', {jid = jid, fields = missing}, function()
    record.set_fields(jid, unpack(written))
    if string.find(lacking, 'klass') or string.find(lacking, 'data') then
      job_location.fail(jid, job, places, 'The job lacked ' .. lacking, now)
    end
  end)
end

function job_fields.is_readable(jid, job, name)
  local value = job[name]
  if name == 'jid' then return value == jid end
  if name == 'state' then return STATES[value] end
  if name == 'data' then return args.is_given(value) end
  if name == 'tags' then return value and type(select(2, pcall(cjson.decode, value))) == 'table' end
  if name == 'failure' and job.state == 'failed' then return failures.group_of(value) end
  if name == 'failure' then
    return not value or type(select(2, pcall(cjson.decode, value))) == 'table'
  end
  if name == 'worker' and not value then return job.state ~= 'running' end
  if name == 'expires' and not args.is_given(value) then return job.state ~= 'running' end
  if TEXTS[name] then return value end
  local number = tonumber(value)
  return number and number == number and math.abs(number) ~= math.huge
end

function job_fields.find_default(jid, job, places, name, now)
  if name == 'jid' then return jid end
  if name == 'time' then return record.format_time(now) end
  if name == 'state' then return job_location.guess_state(places, job.queue) end
  if name == 'remaining' then return job.retries end
  if name == 'failure' and job.state == 'failed' then
    return job_location.encode_failure('The record of its failure was missing', '', now)
  end
  return TEXTS[name] or NUMBERS[name]
end

function job_fields.check_fence(jid, fence)
  local reached = tonumber(redis.call('GET', keys.fence())) or 0
  if fence <= reached or fence > 1e15 then return end
  findings.add('fence-behind', {jid = jid, fence = fence, counter = reached}, function()
    redis.call('SET', keys.fence(), string.format('%.0f', fence))
  end)
end

function job_fields.check_tags(jid, tags, now)
  for i = 1, math.min(#tags, MOST_TAGS) do
    local tag = tags[i]
    if not redis.call('ZSCORE', keys.tag(tag), jid) then
      findings.add('tag-without-entry', {jid = jid, tag = tag}, function()
        redis.call('ZADD', keys.tag(tag), now, jid)
        job_indexes.set_tag_count(tag)
      end)
    end
  end
  return #tags
end
