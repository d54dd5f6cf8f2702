-- bulk_cancel: cancel the jobs of a queue, a bounded number per call. A job is canceled together
-- with all its dependents, or not at all.

local PORTION = 250
local MOST_TOGETHER = 1000
local MOST_LOOKS = 1000
local NEAR = 500
local FEW = 20
local KNOWN = {waiting = true, scheduled = true, depends = true, failed = true}

-- The states to cancel, as jobs' hashes spell them.
function bulk_cancel.parse_states(state, states, group)
  local set = {}
  for _, each in ipairs(states) do
    if not KNOWN[each] then
      errors.bad_argument('states', each, 'must be waiting, scheduled, depends or failed')
    end
    set[each] = true
  end
  if not set[state] then
    errors.bad_argument('state', state, 'must be one of the states to clear')
  end
  if state == 'failed' then args.string('group', group) end
  set.stalled = set.waiting
  return set
end

-- Return JSON: the number canceled, the jobs kept and for which dependent, and the next offset.
function bulk_cancel.run(here, offset)
  local jids = bulk_cancel.read_page(here, offset)
  -- In the middle of a long list, removing an entry takes long.
  local most = here.state == 'failed' and offset > NEAR and FEW or PORTION
  local canceled, passed, kept, at = 0, 0, {}, 0
  here.gone, here.stays, here.looks = {}, {}, 0
  while jids[at + 1] and canceled < most and here.looks < 2 * MOST_LOOKS do
    at = at + 1
    local jid = jids[at]
    if not here.gone[jid] then
      local found, dependent
      if bulk_cancel.may_begin_with(here, jid) then
        found, dependent = bulk_cancel.collect_dependents(here, jid)
      end
      if found then
        canceled = canceled + bulk_cancel.delete(here, found)
      else
        passed = passed + 1
        if dependent then kept[#kept + 1] = cjson.encode({jid, dependent}) end
      end
    end
  end
  local ended = at == #jids and #jids < PORTION
  local next_offset = offset + passed + (here.dry_run and canceled or 0)
  return string.format('{"canceled":%d,"kept":%s,"offset":%s}', canceled, json.list(kept),
    ended and 'null' or string.format('%.0f', next_offset))
end

-- In the order in which they would run; of a failure group, oldest first.
function bulk_cancel.read_page(here, offset)
  if here.state ~= 'failed' then
    return listing.list_state(here.state, here.queue, here.now, offset, PORTION)
  end
  local list, jids = redis.call('LRANGE', keys.group(here.group), -offset - PORTION, -offset - 1),
    {}
  for i = #list, 1, -1 do jids[#jids + 1] = list[i] end
  return jids
end

-- Whether a listed job is still there. Canceling another one may have moved it within its queue, if
-- they share a limit.
function bulk_cancel.may_begin_with(here, jid)
  local job = redis.call('HMGET', keys.job(jid), 'queue', 'state')
  return job[1] == here.queue and job[2] ~= 'running' and job[2] ~= 'complete'
    and (job[2] == 'failed') == (here.state == 'failed')
end

-- A job and all its direct and indirect dependents; or nil and the job that keeps it: one that
-- isn't selected, or the first one too many.
function bulk_cancel.collect_dependents(here, jid)
  local found, cause, looks = {jid}, {[jid] = ''}, 0
  local at = 1
  while found[at] do
    local dependents = redis.call('SRANDMEMBER', keys.dependents(found[at]), MOST_LOOKS + 1)
    table.sort(dependents)
    for _, other in ipairs(dependents) do
      looks, here.looks = looks + 1, here.looks + 1
      if not cause[other] and redis.call('EXISTS', keys.job(other)) == 1 then
        if looks > MOST_LOOKS or #found == MOST_TOGETHER or here.stays[other]
          or not bulk_cancel.is_selected(here, other) then
          return nil, bulk_cancel.mark_kept(here, found[at], cause, here.stays[other] or other)
        end
        cause[other] = found[at]
        found[#found + 1] = other
      end
    end
    at = at + 1
  end
  return found
end

function bulk_cancel.is_selected(here, jid)
  local job = redis.call('HMGET', keys.job(jid), 'queue', 'state')
  return job[1] == here.queue and here.states[job[2]]
end

-- Remember that a job stays, and with it all that it depends on, as far as that was read.
function bulk_cancel.mark_kept(here, jid, cause, dependent)
  while jid ~= '' do
    here.stays[jid] = dependent
    jid = cause[jid]
  end
  return dependent
end

-- Return how many of the listed jobs this accounts for. A dry run lists those that go together one
-- by one.
function bulk_cancel.delete(here, jids)
  if here.dry_run then return 1 end
  for _, jid in ipairs(jids) do
    here.gone[jid] = true
    cancellation.delete(record.read(jid), false, nil, here.actor)
  end
  return #jids
end
