-- job_constraints: the uniqueness, concurrency and rate limits of a job, as JSON in its field
-- `x-constraints`:
--   unique, until, for   its unique key: until it has `started`, until it is `done`, or for a
--                        number of seconds
--   debounce, debounce_max  for how many seconds after the last put with the key it is delayed, and
--                        at most after the first one (debounce.lua)
--   if_exists            if the key or the jid is taken: `keep` that job, or `raise`
--   limits               up to four, each with the `key` that it shares with others, and `limit`,
--                        the maximum number that run at once, or `rate`, [maximum number of starts,
--                        seconds], or both; with `cost`, the rate is of what starts cost
--   fair, weight         its tenant, and how many turns this one has for one of others (turns.lua)
--   set                  the number of its job set, always the first (members.lua)
--   takes                the jids of the jobs whose results it takes as arguments, with the seconds
--                        that each is kept for others
--   taken                others take its result
--   fields               of which fields of the data its keys and costs are made, by their names,
--                        unique, fair, bulk, limits, costs; for clients (key_changes.lua)
--   bulk, size, within   the key of jobs that are popped together, how many at most, and for how
--                        many seconds one waits for others (bulks.lua)
-- Only our scripts enforce them.

local UNTIL, EXISTS = {started = true, done = true}, {keep = true, raise = true}

function job_constraints.read(text) return text and json.parse_object(text) or {} end

-- Parse what a caller sent, and refuse what is invalid. `alone`: the job is no part of another one,
-- such as a workflow, that needs this very job.
function job_constraints.parse(text, alone)
  local own = job_constraints.read(text)
  own.turn, own.joins = nil, nil  -- set while the job is put
  if own.set ~= nil then errors.bad_argument('set', nil, 'is not for callers') end
  if own.if_exists ~= nil and not EXISTS[own.if_exists] then
    errors.bad_argument('if_exists', own.if_exists, 'must be keep or raise')
  end
  job_constraints.check_name('unique', own.unique)
  job_constraints.check_name('fair', own.fair)
  job_constraints.check_name('bulk', own.bulk)
  if own.unique and own['for'] == nil and not UNTIL[own['until']] then
    errors.bad_argument('until', own['until'], 'must be started or done')
  end
  if own['for'] ~= nil then args.interval('for', own['for']) end
  if own.debounce ~= nil or own.debounce_max ~= nil then
    job_constraints.check_debounce(own, alone)
  end
  if own.limits ~= nil then job_constraints.check_limits(own.limits) end
  if own.weight ~= nil then args.between('weight', own.weight, 0.01, 100) end
  if own.takes ~= nil then job_constraints.check_takes(own.takes) end
  if own.weight ~= nil and not own.fair then errors.bad_argument('fair', nil, 'is missing') end
  if own.bulk then
    job_constraints.check_whole('size', own.size, constants.MAX_BATCH)
    args.between('within', own.within, 0, constants.DAY)
  elseif own.size ~= nil or own.within ~= nil then
    errors.bad_argument('bulk', nil, 'is missing')
  end
  return own
end

function job_constraints.check_debounce(own, alone)
  if not alone then
    errors.bad_argument('debounce', own.debounce,
      'is not for workflows, branches, calls and recurring jobs')
  end
  args.interval('debounce', own.debounce)
  if own.debounce_max ~= nil and args.interval('debounce_max', own.debounce_max) < own.debounce then
    errors.bad_argument('debounce_max', own.debounce_max, 'is less than debounce')
  end
  if not own.unique or own['until'] ~= 'done' or own['for'] ~= nil or own.if_exists then
    errors.bad_argument('debounce', own.debounce,
      'needs a key that is unique until done, without if_exists')
  end
end

function job_constraints.check_takes(takes)
  if type(takes) ~= 'table' then errors.bad_argument('takes', nil, 'must be an object') end
  for jid, seconds in pairs(takes) do
    if type(jid) ~= 'string' then errors.bad_argument('takes', nil, 'must be an object') end
    args.interval('takes', seconds)
  end
end

function job_constraints.check_name(name, value)
  if value ~= nil and type(value) ~= 'string' then
    errors.bad_argument(name, value, 'is not a string')
  end
  if value then args.name(name, value) end
end

function job_constraints.check_limits(given)
  if type(given) ~= 'table' or #given < 1 or #given > constants.MAX_LIMITS then
    errors.bad_argument('limits', nil, 'must be a list of 1 to ' .. constants.MAX_LIMITS)
  end
  local seen = {}
  for _, limit in ipairs(given) do
    job_constraints.check_limit(type(limit) == 'table' and limit or {})
    if seen[limit.key] then
      errors.bad_argument('key', limit.key, 'is that of two limits; write one with both')
    end
    seen[limit.key] = true
  end
end

function job_constraints.check_limit(own)
  job_constraints.check_name('key', own.key)
  if not own.key then errors.bad_argument('key', nil, 'is missing') end
  if not (own.limit or own.rate) then
    errors.bad_argument('key', own.key, 'needs a limit or a rate')
  end
  if own.limit ~= nil then
    job_constraints.check_whole('limit', own.limit, constants.MAX_CONCURRENCY)
  end
  if own.rate ~= nil then
    if type(own.rate) ~= 'table' or #own.rate ~= 2 then
      errors.bad_argument('rate', nil, 'must be [maximum, seconds]')
    end
    job_constraints.check_whole('rate', own.rate[1],
      own.cost and constants.MAX_RATE_COST or constants.MAX_RATE_STARTS)
    args.interval('rate', own.rate[2])
  end
  if own.cost ~= nil then
    if not own.rate then errors.bad_argument('cost', nil, 'needs a rate') end
    args.between('cost', own.cost, 0, own.rate[1])
  end
end

function job_constraints.check_whole(name, value, most)
  if args.between(name, value, 1, most) % 1 ~= 0 then
    errors.bad_argument(name, value, 'is not an integer')
  end
end

-- The limit of a job that has this key.
function job_constraints.find_limit(own, key)
  for _, limit in ipairs(own.limits or {}) do
    if limit.key == key then return limit end
  end
  return nil
end

-- The number of the set that a job's constraints name, if any.
function job_constraints.read_set(constraints) return string.match(constraints, '^{"set":(%d+)') end

-- Constraints as JSON, with the number of a set.
function job_constraints.name_set(constraints, set)
  local others = string.match(constraints or '', '^{"set":%d+,?(.*)$')
    or string.match(constraints or '', '^{(.*)$') or '}'
  return '{"set":' .. set .. (others == '}' and '' or ',') .. others
end
