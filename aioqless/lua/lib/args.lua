-- args: turn the texts of ARGV and KEYS into checked values.  A composed script calls these before its body.

local LONGEST_NAME = 512
local LONGEST_LIST = 1000
local LONGEST_LISTS = 20000
local CHECKED_DATA = 65536
local listed = 0

function args.given(value) return value and value ~= '' end

function args.string(name, value)
  if not value or value == '' then refusal.argument(name, value, 'is missing') end
  return value
end

-- Any text, the empty one too.
function args.text(name, value)
  if not value then refusal.argument(name, value, 'is missing') end
  return value
end

-- A name that this call brings into being.  Names that exist already may look otherwise: peers are not so strict.
function args.name(name, value)
  args.string(name, value)
  if #value > LONGEST_NAME then refusal.argument(name, value, 'is longer than ' .. LONGEST_NAME .. ' bytes') end
  if string.find(value, '%c') then refusal.argument(name, value, 'has a control character') end
  return value
end

-- A new job's id.  Some endings are taken: a job's other keys are spelled with them.
function args.jid(name, value)
  args.name(name, value)
  if string.find(value, '%-history$') or string.find(value, '%-dependencies$') or string.find(value, '%-dependents$') then
    refusal.argument(name, value, 'ends as a key of another job does')
  end
  return value
end

function args.queue(name, key)
  key = args.string(name, key)
  local prefix = ns .. ':q:'
  if string.sub(key, 1, #prefix) == prefix then key = string.sub(key, #prefix + 1) end
  return args.string(name, key)
end

function args.new_queue(name, key) return args.name(name, args.queue(name, key)) end

function args.queues(texts)
  if #texts == 0 then refusal.argument('queues', nil, 'name at least one queue, as a key') end
  if #texts > LONGEST_LIST then refusal.argument('queues', nil, 'are more than ' .. LONGEST_LIST .. '; call again for the others') end
  local queues = {}
  for i = 1, #texts do queues[i] = args.queue('queues', texts[i]) end
  return queues
end

function args.number(name, value)
  local number = tonumber(value)
  if not number or number ~= number or number == math.huge or number == -math.huge then
    refusal.argument(name, value, 'is not a number')
  end
  return number
end

function args.between(name, value, low, high)
  local number = args.number(name, value)
  if number < low or number > high then
    refusal.argument(name, value, string.format('is not between %.17g and %.17g', low, high))
  end
  return number
end

-- Seconds since 1970; empty for the clock of this server, which all workers share.
function args.time(name, value)
  if not args.given(value) then
    local clock = redis.call('TIME')
    return clock[1] + clock[2] / 1000000
  end
  return args.between(name, value, 0, 1e11)
end

function args.seconds(name, value) return args.between(name, value, 0, 1e10) end

function args.count(name, value)
  local number = args.between(name, value, 0, 1e15)
  if number % 1 ~= 0 then refusal.argument(name, value, 'is not a whole number') end
  return number
end

function args.interval(name, value)
  local seconds = args.seconds(name, value)
  if seconds == 0 then refusal.argument(name, value, 'must be more than 0') end
  return seconds
end

-- Callers say negative for sooner, as the specification does; Redis holds what live clients expect, the other sign.
function args.priority(name, value) return precedence.turned(args.between(name, value, -1e9, 1e9)) end

-- A job's data: kept as the very bytes that came.  Only up to a size are they parsed here, to see that they are JSON.
function args.data(name, value)
  args.string(name, value)
  if #value > CHECKED_DATA then return value end
  local valid, parsed = pcall(cjson.decode, value)
  if not valid then refusal.argument(name, value, 'is not JSON') end
  if parsed == false then refusal.argument(name, value, 'is false, which peers take for missing') end
  return value
end

function args.object(name, value)
  if not string.find(args.data(name, value), '^%s*{') then refusal.argument(name, value, 'is not a JSON object') end
  return value
end

-- A JSON list of texts, without repetitions.
function args.list(name, value, check)
  local valid, parsed = pcall(cjson.decode, args.string(name, value))
  if not valid or type(parsed) ~= 'table' or not string.find(value, '^%s*%[') then
    refusal.argument(name, value, 'is not a JSON list')
  end
  if #parsed > LONGEST_LIST then refusal.argument(name, value, 'has more than ' .. LONGEST_LIST .. ' entries') end
  listed = listed + #parsed
  if listed > LONGEST_LISTS then refusal.argument(name, nil, 'has too much with the lists before it in this call; call again for this one') end
  local seen, list = {}, {}
  for i = 1, #parsed do
    local text = parsed[i]
    if type(text) ~= 'string' then refusal.argument(name, value, 'has an entry that is not a text') end
    check(name, text)
    if not seen[text] then
      seen[text] = true
      list[#list + 1] = text
    end
  end
  return list
end

function args.tags(name, value) return args.list(name, value, args.name) end

function args.jids(name, value) return args.list(name, value, args.string) end

-- A caller's line of requests and the number of this one in it, as `line:number`.
function args.request(name, value)
  local id, number = string.match(value, '^(%C+):(%d+)$')
  if not id or #value > LONGEST_NAME then refusal.argument(name, value, 'is not of the form line:number') end
  return {id = id, number = tonumber(number)}
end

function args.literal(word, value)
  if value ~= word then refusal.argument(word, value, 'must be the word ' .. word) end
end

function args.word(known, default, value)
  local word = value or default
  if not word or not known[word] then
    local words = {}
    for name in pairs(known) do words[#words + 1] = name end
    table.sort(words)
    refusal.argument('command', value, 'must be one of ' .. table.concat(words, ', '))
  end
  return word
end

-- The tail of ARGV from `first`, up to its end or an empty argument, and where what follows begins.
function args.rest(name, check, first)
  local list, at = {}, first
  while args.given(ARGV[at]) do
    if #list == LONGEST_LIST then refusal.argument(name, nil, 'has more than ' .. LONGEST_LIST .. ' entries; call again for the others') end
    list[#list + 1] = check(name, ARGV[at])
    at = at + 1
  end
  return list, at + 1
end

-- Where a batch that begins with its count ends.
function args.batch(first, width)
  local count = args.count('count', ARGV[first])
  if count > LONGEST_LIST then refusal.argument('count', ARGV[first], 'is more than ' .. LONGEST_LIST .. '; call again for the others') end
  if #ARGV < first + count * width then refusal.argument('count', ARGV[first], 'promises more than was sent') end
  return first + 1 + count * width
end

-- One answer for each tuple of a batch: a refused one leaves its neighbours alone.
function args.each(first, last, width, perform)
  local answers = {}
  for i = first, last - 1, width do
    local accepted, answer = pcall(perform, i)
    if not accepted then answer = refusal.caught(answer) end
    answers[#answers + 1] = answer
  end
  return answers
end

function args.options(known, first)
  local options = {}
  if first <= #ARGV and (#ARGV - first) % 2 == 0 then
    refusal.argument('options', ARGV[#ARGV], 'come in pairs of a name and a value')
  end
  for i = first, #ARGV, 2 do
    if not known[ARGV[i]] then refusal.argument(ARGV[i], ARGV[i + 1], 'is not an option of this command') end
    options[ARGV[i]] = ARGV[i + 1]
  end
  return options
end

function args.no_more(first)
  if #ARGV >= first then refusal.argument('arguments', ARGV[first], 'is one argument too many') end
end
