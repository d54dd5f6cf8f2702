-- args: parse and check the strings of ARGV and KEYS, by type. (Arguments of variable number:
-- layout.lua.)

local LONGEST_LISTS = 10000

function args.is_given(value) return value and value ~= '' end

function args.string(name, value)
  return value and value ~= '' and value or args.refuse_missing(name, value)
end

function args.refuse_missing(name, value) errors.bad_argument(name, value, 'is missing') end

-- Any string, including the empty one.
function args.text(name, value) return value or args.refuse_missing(name, value) end

-- The name of something new. Existing names may look different: peers are less strict.
function args.name(name, value)
  return value and value ~= '' and #value <= constants.MAX_NAME_LENGTH
    and not string.find(value, '%c') and value or args.refuse_name(name, value)
end

function args.refuse_name(name, value)
  if not value or value == '' then args.refuse_missing(name, value) end
  if #value > constants.MAX_NAME_LENGTH then
    errors.bad_argument(name, value, 'is longer than ' .. constants.MAX_NAME_LENGTH .. ' bytes')
  end
  errors.bad_argument(name, value, 'has a control character')
end

-- A new job's id. Some endings are reserved: other keys of a job end like this.
function args.jid(name, value)
  return value and #value <= constants.MAX_NAME_LENGTH and string.find(value, '^%w+$') and value
    or args.check_jid(name, value)
end

function args.check_jid(name, value)
  if not value or value == '' or #value > constants.MAX_NAME_LENGTH
    or string.find(value, '%c') then
    args.refuse_name(name, value)
  end
  if args.is_key_of_job(value) then
    errors.bad_argument(name, value, 'ends as a key of another job does')
  end
  return value
end

-- Whether a jid ends as another key of a job does.
function args.is_key_of_job(jid)
  return string.find(jid, '%-history$') or string.find(jid, '%-dependencies$')
    or string.find(jid, '%-dependents$')
end

-- The id of an entry of a stream. (Redis takes greater ones, of which no entry ever has one.)
function args.entry_id(name, value)
  local ms, seq = string.match(args.string(name, value), '^(%d+)%-(%d+)$')
  return ms and #ms < 20 and #seq < 20 and value
    or errors.bad_argument(name, value, 'is not the id of an entry')
end

-- The id of a job that may exist; a peer may have created an empty one.
function args.any_jid(name, value) return args.text(name, value) end

function args.queue(name, key)
  local prefix = ns .. ':q:'
  if key and string.sub(key, 1, #prefix) == prefix then key = string.sub(key, #prefix + 1) end
  return key and key ~= '' and key or args.refuse_missing(name, key)
end

function args.new_queue(name, key)
  return args.name(name, args.queue(name, key))
end

function args.queues(texts)
  if #texts == 0 then errors.bad_argument('queues', nil, 'name at least one queue, as a key') end
  if #texts > constants.MAX_BATCH then
    errors.bad_argument('queues', nil,
      'are more than ' .. constants.MAX_BATCH .. '; call again for the others')
  end
  local queues = {}
  for i = 1, #texts do queues[i] = args.queue('queues', texts[i]) end
  return queues
end

function args.number(name, value)
  local number = tonumber(value)
  if not number or number ~= number or number == math.huge or number == -math.huge
    or string.find(value, '%z') then
    errors.bad_argument(name, value, 'is not a number')
  end
  return number
end

function args.between(name, value, low, high)
  local number = tonumber(value)
  if not number or not (number >= low and number <= high) or string.find(value, '%z') then
    number = args.number(name, value)
    if number < low or number > high then
      errors.bad_argument(name, value, string.format('is not between %.17g and %.17g', low, high))
    end
  end
  return number
end

-- Seconds since 1970; empty: the clock of this server, which all workers share.
function args.time(name, value)
  return value and value ~= '' and args.between(name, value, 0, 1e11) or clock.now()
end

function args.seconds(name, value) return args.between(name, value, 0, 1e10) end

function args.count(name, value)
  return value and #value < 16 and string.find(value, '^%d+$') and tonumber(value)
    or args.read_count(name, value)
end

function args.read_count(name, value)
  local number = args.between(name, value, 0, 1e15)
  if number % 1 ~= 0 then errors.bad_argument(name, value, 'is not an integer') end
  return number
end

function args.fraction(name, value) return args.between(name, value, 0, 1) end

function args.interval(name, value)
  local seconds = args.seconds(name, value)
  if seconds == 0 then errors.bad_argument(name, value, 'must be more than 0') end
  return seconds
end

-- Callers use negative for sooner, as the specification does; Redis stores the opposite, as live
-- clients do.
function args.priority(name, value)
  return priority_score.negate(args.between(name, value, -constants.MAX_PRIORITY,
    constants.MAX_PRIORITY))
end

-- A job's data, stored byte for byte. That it is JSON clients have checked.
function args.data(name, value)
  if not value or value == '' then args.refuse_missing(name, value) end
  if string.find(value, '^%s*false%s*$') then
    errors.bad_argument(name, value, 'is false, which peers treat as missing')
  end
  return value
end

-- An object that is stored in a job's history, which others parse and nest in their own JSON: its
-- depth is checked, too, since cjson accepts 1,000 levels and Python somewhat less. Nearly all
-- objects have fewer brackets than that, and need no second parsing.
function args.object(name, value)
  if not pcall(cjson.decode, args.string(name, value)) or not string.find(value, '^%s*{') then
    errors.bad_argument(name, value, 'is not a JSON object')
  end
  local depth, _, brackets = constants.MAX_DATA_DEPTH, string.gsub(value, '[%[{]', '')
  local nested = brackets > 100 and string.rep('[', depth) .. value .. string.rep(']', depth)
  if nested and not pcall(cjson.decode, nested) then
    errors.bad_argument(name, value, 'has more than 100 levels')
  end
  return value
end

-- A JSON list of strings, without duplicates.
function args.list(name, value, check)
  local valid, parsed = pcall(cjson.decode, args.string(name, value))
  if not valid or type(parsed) ~= 'table' or not string.find(value, '^%s*%[') then
    errors.bad_argument(name, value, 'is not a JSON list')
  end
  if #parsed > constants.MAX_BATCH then
    errors.bad_argument(name, value, 'has more than ' .. constants.MAX_BATCH .. ' entries')
  end
  call.listed = (call.listed or 0) + #parsed
  if call.listed > LONGEST_LISTS then
    errors.bad_argument(name, nil,
      'exceeds the maximum size of all lists of a call; call again for this one')
  end
  local seen, list = {}, {}
  for i = 1, #parsed do
    local text = parsed[i]
    if type(text) ~= 'string' then
      errors.bad_argument(name, value, 'has an entry that is not a string')
    end
    check(name, text)
    if not seen[text] then list[#list + 1] = text end
    seen[text] = true
  end
  return list
end

function args.tags(name, value) return args.list(name, value, args.name) end

function args.jids(name, value) return args.list(name, value, args.string) end
