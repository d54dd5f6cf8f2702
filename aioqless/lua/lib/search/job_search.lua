-- job_search: the jobs that a filter may match, list by list. A position is {stage, name, mark,
-- jid}: the list, and its last entry that was searched, by its score or, in a failure group, by the
-- number of older entries, which new failures don't change.

local BUDGET = 500
local PAGE = 100
local STAGES = {'running', 'waiting', 'scheduled', 'depends', 'failed', 'complete'}
local STATES = {
  running = {'running', 'stalled'}, waiting = {'waiting', 'stalled'}, scheduled = {'scheduled'},
  depends = {'depends'}, failed = {'failed'}, complete = {'complete'},
}

function job_search.run(search, cursor, stop)
  search.found, search.searched, search.unsearched, search.spent = {}, 0, 0, 0
  local at, last = job_search.parse_cursor(cursor), job_search.parse_cursor(stop)
  search.last = last
  local total = job_search.plan(search, at)
  local next_cursor = job_search.walk(search, at)
  return '{"cursor":' .. cjson.encode(next_cursor and cjson.encode(next_cursor) or '0')
    .. ',"searched":' .. search.searched .. ',"total":' .. (at and 0 or total)
    .. ',"unsearched":' .. search.unsearched .. ',"found":' .. json.texts(search.found) .. '}'
end

function job_search.parse_cursor(text)
  if not text or text == '' or text == '0' then return nil end
  local valid, at = pcall(cjson.decode, text)
  valid = valid and type(at) == 'table' and #at == 4
  for i = 1, 4 do valid = valid and type(at[i]) == 'string' end
  -- A number as the server reads it too, which takes no spaces.
  local is_number = valid
    and (string.find(at[3], '^%-?[%d.e+-]+$') or string.find(at[3], '^-?inf$'))
  if not is_number or not tonumber(at[3]) then
    errors.bad_argument('cursor', text, 'is not a cursor of find')
  end
  return {stage = at[1], name = at[2], mark = at[3], jid = at[4]}
end

-- Choose the lists to search, unless the search continues: those of a jid, tag or worker where they
-- are fewer than those of the states. Return the number of their entries.
function job_search.plan(search, at)
  local values, allowed = {}, {}
  for _, key in ipairs({'jid', 'tag', 'worker', 'group', 'queue'}) do
    values[key] = job_filter.list_values(search.conditions, key)
  end
  search.values, search.stages = values, {}
  search.times = {least = -math.huge, most = math.huge}
  for _, condition in ipairs(search.conditions) do
    if condition.key == 'time' and not condition.negated
      and not presence.has('retention_rules') then
      search.times.least = math.max(search.times.least, condition.least or -math.huge)
      search.times.most = math.min(search.times.most, condition.most or math.huge)
    end
  end
  for _, stage in ipairs(STAGES) do
    local is_possible = not values.group or stage == 'failed'
    local is_met = false
    for _, state in ipairs(STATES[stage]) do
      is_met = is_met or job_search.may_be(search, state)
    end
    if is_possible and is_met then search.stages[#search.stages + 1] = stage end
    allowed[stage] = is_possible and is_met
  end
  local only_running = #search.stages == 1 and allowed.running
  local narrow = values.jid and 'jid' or only_running and values.worker and 'worker'
    or values.tag and #values.tag == 1 and 'tag'
  if at then
    if not STATES[at.stage] then search.stages = {at.stage} end
    if at.stage == narrow or allowed[at.stage] then return 0 end
    errors.bad_argument('cursor', at.stage, 'is not a cursor of this filter')
  end
  local total = job_search.count(search)
  local stages = search.stages
  if not narrow or #stages == 0 then return total end
  search.stages = {narrow}
  local fewer = job_search.count(search)
  if fewer <= total then return fewer end
  search.stages = stages
  return total
end

-- Whether the conditions about the state allow one.
function job_search.may_be(search, state)
  for _, condition in ipairs(search.conditions) do
    if condition.key == 'state'
      and not job_filter.has_text({state = state}, condition) == not condition.negated then
      return false
    end
  end
  return true
end

function job_search.count(search)
  local total = 0
  for _, stage in ipairs(search.stages) do
    for _, name in ipairs(searched_lists.list_names(search, stage)) do
      local first, limit = searched_lists.read_bounds(search, stage, name)
      total = total + math.max(0, limit - first)
    end
  end
  return total
end

-- Search list by list, until enough was found or read; return the position, nil at the end.
function job_search.walk(search, at)
  local last, is_ahead = search.last, at == nil
  for _, stage in ipairs(search.stages) do
    local is_here = at and stage == at.stage
    is_ahead = is_ahead or is_here
    for _, name in ipairs(is_ahead and searched_lists.list_names(search, stage) or {}) do
      local ends = last and stage == last.stage and name >= last.name
      if ends and name ~= last.name then return nil end
      if not is_here or name >= at.name then
        local position = job_search.search_list(search, stage, name,
          is_here and name == at.name and at, ends and last)
        if position then return position end
      end
      if ends then return nil end
    end
    if last and stage == last.stage then return nil end
  end
end

-- Search a list between two positions; return the position where the search is interrupted.
function job_search.search_list(search, stage, name, from, last)
  local first, limit = searched_lists.read_bounds(search, stage, name)
  local total = limit
  if from then first = math.max(first, searched_lists.find_rank(from)) end
  if last then limit = math.min(limit, searched_lists.find_rank(last)) end
  while first < limit do
    local page = searched_lists.read_page(search, stage, name, first, math.min(first + PAGE, limit))
    for i, entry in ipairs(page) do
      job_search.search_job(search, entry[1])
      if #search.found >= search.most or search.spent >= BUDGET then
        local mark = stage == 'failed' and total - first - i or stage == 'jid' and first + i
          or entry[2]
        return {stage, name, tostring(mark), entry[1]}
      end
    end
    first = first + PAGE
  end
  search.spent = search.spent + 0.25
  if search.spent >= BUDGET and not last then
    return {stage, name, searched_lists.is_newest_first(stage) and '-inf'
      or stage == 'failed' and '0' or 'inf', ''}
  end
end

function job_search.search_job(search, jid)
  local job = job_filter.read(jid, search.now)
  search.searched, search.spent = search.searched + 1, search.spent + 1
  if not job then return end
  if job_filter.matches(job, search.conditions, search.now) then
    search.found[#search.found + 1] = jid
  end
  if job.is_unsearched then search.unsearched = search.unsearched + 1 end
  search.spent = search.spent + job.cost - 1
end
