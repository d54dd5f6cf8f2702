-- constraints: the terms on which a job is put and run: JSON in its field `x-terms`, with any of
--   unique, until, for   a key that it has alone: while it waits (until `started`), until it has ended (`done`), or for so many seconds
--   exists               if the key is taken, or the jid: `keep` that job, or `raise`
--   key, limit, rate     a key that it shares; how many of it may run at once; [how many of it may start, within so many seconds]
-- They bind our scripts alone.

local MOST_AT_ONCE, MOST_STARTS = 1000, 10000
local UNTIL, EXISTS = {started = true, done = true}, {keep = true, raise = true}

function constraints.read(text) return text and json.parse_object(text) or {} end

-- What a caller sent, refused by the name of what can't be.
-- @seldom
function constraints.parse(text)
  local own = constraints.read(text)
  if own.exists ~= nil and not EXISTS[own.exists] then errors.bad_argument('exists', own.exists, 'must be keep or raise') end
  for _, name in ipairs({'unique', 'key'}) do
    if own[name] ~= nil and type(own[name]) ~= 'string' then errors.bad_argument(name, own[name], 'is not a text') end
    if own[name] then args.name(name, own[name]) end
  end
  if own.unique and own['for'] == nil and not UNTIL[own['until']] then errors.bad_argument('until', own['until'], 'must be started or done') end
  if own['for'] ~= nil then args.interval('for', own['for']) end
  if own.limit ~= nil then constraints.check_whole('limit', own.limit, MOST_AT_ONCE) end
  if own.rate ~= nil then
    if type(own.rate) ~= 'table' or #own.rate ~= 2 then errors.bad_argument('rate', nil, 'must be how many, and seconds') end
    constraints.check_whole('rate', own.rate[1], MOST_STARTS)
    args.interval('rate', own.rate[2])
  end
  if own.key and not (own.limit or own.rate) then errors.bad_argument('key', own.key, 'needs a limit or a rate') end
  if (own.limit or own.rate) and not own.key then errors.bad_argument('key', nil, 'is missing') end
  return own
end

function constraints.check_whole(name, value, most)
  if args.between(name, value, 1, most) % 1 ~= 0 then errors.bad_argument(name, value, 'is not a whole number') end
end

-- The jid of a job that stands in the way of a put on these terms, if there is one; `job` is that of the same jid.
-- @seldom
function constraints.find_conflict(own, job, now)
  local other = own.exists and job and job.jid or own.unique and uniqueness.find_holder(own.unique, now)
  if other and own.exists == 'raise' then errors.raise('EXISTS', 'there is such a job already', {jid = other}) end
  return other
end

local claimed = {}

-- Refuses a job that something stands in the way of, for where others are put with it.
function constraints.require_no_conflict(text, jid, now)
  local own = constraints.parse(text)
  local other = own.exists and redis.call('EXISTS', keys.job(jid)) == 1 and jid
    or own.unique and (claimed[own.unique] or uniqueness.find_holder(own.unique, now))
  if other then errors.raise('EXISTS', 'there is such a job already', {jid = other}) end
  if own.unique then claimed[own.unique] = jid end
end

-- A job is put on these terms; `former` are those it had. Without a text it has them already, and is to run again: what it alone had
-- is its again, unless another has it by now.
-- @seldom
function constraints.apply(jid, text, own, former, now)
  local before = constraints.read(former)
  if before.unique and before.unique ~= own.unique then uniqueness.release(before.unique, jid) end
  if own.unique and (text or not own['for'] and not uniqueness.find_holder(own.unique, now)) then uniqueness.claim(own, jid, now) end
  if not text then return end
  if own.unique or own.key then record.set_fields(jid, 'x-terms', text) elseif former then record.delete_fields(jid, 'x-terms') end
end

-- A job has ended for good, or is deleted: what it alone had is free.
-- @seldom
function constraints.release(job, deleted)
  local own = constraints.read(job.terms)
  if own.unique and (deleted or not own['for']) then uniqueness.release(own.unique, job.jid) end
end
