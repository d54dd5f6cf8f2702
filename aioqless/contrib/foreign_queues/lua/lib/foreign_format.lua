-- foreign_format: jobs in the format that resque introduced and sidekiq and exq share: `{"class":,
-- "args":, "jid":, "queue":, "retry":, ...}`.

local RETRIES = 25  -- what `"retry": true` means there
local WANTED = {args = true, tags = true}

local function text_of(value) return type(value) == 'string' and value or nil end

local function number_of(value)
  return type(value) == 'number' and value == value and math.abs(value) ~= math.huge and value
    or nil
end

-- Put the job that an entry describes, or store the entry as rejected. The caller deletes it from
-- where it was. `at` has: `key` and, in a sorted set, `score`: where the entry was; `queue`: its
-- new queue; `now`, `due`; `first_retry`: the `retry_count` of an entry before its first retry.
-- Return nil, or the reason of the rejection as JSON.
function foreign_format.put(entry, at)
  local valid, put = pcall(foreign_format.parse, entry, at)
  if valid and redis.call('EXISTS', keys.job(put.jid)) == 0 then
    enqueue.write(put, put)
    if put.failure then record.set_fields(put.jid, 'failure', put.failure) end
    if put.remaining then record.set_fields(put.jid, 'remaining', put.remaining) end
    return nil
  end
  local why = valid and 'a job with this jid exists' or foreign_format.explain(put)
  local about = '{"why":' .. cjson.encode(why) .. ',"source":' .. cjson.encode(at.key) .. ',"jid":'
    .. (valid and cjson.encode(put.jid) or 'null')
  redis.call('LPUSH', keys.rejected_imports(),
    about .. ',"score":' .. (at.score and cjson.encode(at.score) or 'null') .. ',"when":'
    .. json.number(at.now)
    .. ',"entry":' .. cjson.encode(entry) .. '}')
  return about .. '}'
end

function foreign_format.explain(caught)
  local refused = cjson.decode(string.match(errors.from_pcall(caught).err, '{.*$'))
  return refused.argument .. ' ' .. refused.why
end

-- The arguments of put for an entry, checked like those of the command.
function foreign_format.parse(entry, at)
  local job = foreign_format.decode(entry)
  local raw = json_slices.find_members(entry, WANTED)
  if raw.args and string.sub(raw.args, 1, 1) ~= '[' then
    errors.bad_argument('args', raw.args, 'is not a list')
  end
  local jid = text_of(job.jid) or foreign_format.create_jid(entry, at.now)
  local retries = foreign_format.read_retries(job.retry)
  local used = number_of(job.retry_count)
  return {
    jid = args.jid('jid', jid),
    klass = args.name('class', text_of(job.wrapped) or text_of(job.class)), data = raw.args or '[]',
    queue = args.name('queue', at.queue(job)), now = at.now,
    delay = math.max((at.due or 0) - at.now, 0),
    tags = raw.tags and raw.tags ~= 'null' and args.tags('tags', raw.tags) or nil,
    retries = retries,
    remaining = used and math.max((retries or RETRIES) - math.floor(used) - 1 + at.first_retry, 0),
    failure = foreign_format.read_failure(job, at),
  }
end

function foreign_format.decode(entry)
  local valid, job = pcall(cjson.decode, entry)
  if not valid then valid, job = pcall(cjson.decode, json.drop_surrogates(entry)) end
  if not valid or type(job) ~= 'table' or not string.find(entry, '^%s*{') then
    errors.bad_argument('entry', entry, 'is not a JSON object')
  end
  return job
end

-- The queue that an entry names; nil if it can't be read, and so isn't for another importer.
function foreign_format.read_queue(entry)
  local valid, job = pcall(foreign_format.decode, entry)
  return valid and text_of(job.queue) or nil
end

-- resque's entries have no id. Two entries of the same bytes are two jobs.
function foreign_format.create_jid(entry, now)
  return string.sub(redis.sha1hex(redis.call('INCR', keys.import_counter()) .. ':'
    .. json.number(now) .. ':' .. entry), 1, constants.JID_DIGITS)
end

-- nil if the entry doesn't say: our default.
function foreign_format.read_retries(retry)
  if retry == nil or retry == cjson.null then return nil end
  if retry == true then return RETRIES end
  if retry == false then return 0 end
  return args.count('retry', tostring(retry))
end

-- The latest failure that an entry records. exq names no error class. Times are in milliseconds
-- since sidekiq 8.
function foreign_format.read_failure(job, at)
  local kind, message = text_of(job.error_class), job.error_message
  if message == cjson.null then message = nil end
  if not kind and not message then return nil end
  local when = number_of(job.retried_at) or number_of(job.failed_at) or at.now
  if when > 1e11 then when = when / 1000 end
  message = text_of(message) or message and cjson.encode(message) or ''
  return failures.encode(string.sub(at.queue(job) .. '-' .. (kind or 'Error'), 1,
    constants.MAX_NAME_LENGTH), message,
    '', when)
end
