-- soundness: whether a job is whole. (Whether it is where it should be: whereabouts.lua.)

local MOST_TAGS = 1000

local FIELDS = {
  'jid', 'klass', 'data', 'queue', 'state', 'worker', 'priority', 'tags', 'expires', 'retries', 'remaining', 'time', 'failure',
}
local TEXTS = {klass = '', queue = '', worker = '', data = '{}', tags = '[]', failure = '{}'}
local NUMBERS = {priority = 0, expires = 0, retries = 5, remaining = 5}
local STATES = {waiting = true, scheduled = true, depends = true, running = true, stalled = true, failed = true, complete = true}
local reached

-- Returns how much work it was.
function soundness.job(jid, now)
  local values, job = redis.call('HMGET', keys.job(jid), 'scheduled', 'x-fence', unpack(FIELDS)), {}
  job.scheduled, job.fence = values[1], tonumber(values[2])
  for i, name in ipairs(FIELDS) do job[name] = values[i + 2] end
  local places = whereabouts.places(jid, job.queue or '')
  soundness.fields(jid, job, places, now)
  local work = 3 + whereabouts.check(jid, job, places, now)
  if job.fence then soundness.fence(jid, job.fence) end
  return work + soundness.tags(jid, json.parsed_texts(job.tags), now)
end

-- What is missing or can't be read gets its default in `job` too, so that the other checks can go on.
function soundness.fields(jid, job, places, now)
  local missing, written = {}, {}
  for _, name in ipairs(FIELDS) do
    if not soundness.readable(jid, job, name) then
      missing[#missing + 1] = name
      job[name] = soundness.default(jid, job, places, name, now)
      written[#written + 1], written[#written + 2] = name, job[name]
    end
  end
  if #missing == 0 then return end
  local lacking = table.concat(missing, ', ')
  findings.add('fields', {jid = jid, fields = missing}, function()
    record.set(jid, unpack(written))
    if string.find(lacking, 'klass') or string.find(lacking, 'data') then
      whereabouts.fail(jid, job, places, 'The job lacked ' .. lacking, now)
    end
  end)
end

function soundness.readable(jid, job, name)
  local value = job[name]
  if name == 'jid' then return value == jid end
  if name == 'state' then return STATES[value] end
  if name == 'data' then return args.given(value) end
  if name == 'tags' then return value and type(select(2, pcall(cjson.decode, value))) == 'table' end
  if name == 'failure' and job.state == 'failed' then return groups.of(value) end
  if name == 'failure' then return not value or type(select(2, pcall(cjson.decode, value))) == 'table' end
  if name == 'expires' and value == '' then return true end
  if TEXTS[name] then return value end
  local number = tonumber(value)
  return number and number == number and math.abs(number) ~= math.huge
end

function soundness.default(jid, job, places, name, now)
  if name == 'jid' then return jid end
  if name == 'time' then return record.time(now) end
  if name == 'state' then return whereabouts.state(places, job.queue) end
  if name == 'remaining' then return job.retries end
  if name == 'failure' and job.state == 'failed' then return whereabouts.failure('The record of its failure was missing', '', now) end
  return TEXTS[name] or NUMBERS[name]
end

function soundness.fence(jid, fence)
  reached = reached or tonumber(redis.call('GET', keys.fence())) or 0
  if fence <= reached or fence > 1e15 then return end
  findings.add('fence-behind', {jid = jid, fence = fence, counter = reached}, function()
    redis.call('SET', keys.fence(), string.format('%.0f', fence))
    reached = fence
  end)
end

function soundness.tags(jid, tags, now)
  for i = 1, math.min(#tags, MOST_TAGS) do
    local tag = tags[i]
    if not redis.call('ZSCORE', keys.tag(tag), jid) then
      findings.add('tag-without-entry', {jid = jid, tag = tag}, function()
        redis.call('ZADD', keys.tag(tag), now, jid)
        registers.recount(tag)
      end)
    end
  end
  return #tags
end
